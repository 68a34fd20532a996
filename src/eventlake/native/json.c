/* One line of JSON: strictly what RFC 8259 allows, and of that, what is usual. */
#include "lines.h"

enum { MAX_DEPTH = 24, MAX_ARRAY_DEPTH = 32, MAX_ARRAY_KEYS = 256 };
enum { SHORTEST_VALUE = 5 }; /* bytes that a value takes at least, with its key: "":1, */

#define EACH_BYTE 0x0101010101010101u
#define HIGH_BITS 0x8080808080808080u

/* The high bit of each byte that is zero; above the lowest of them there may be more. */
static inline uint64_t zero_bytes(uint64_t bytes)
{
    return (bytes - EACH_BYTE) & ~bytes & HIGH_BITS;
}

static inline uint64_t below_space(uint64_t bytes)
{
    return (bytes - EACH_BYTE * ' ') & ~bytes & HIGH_BITS;
}

static inline const uint8_t *after_spaces(const uint8_t *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static inline bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        uint8_t first = *p++;
        if (first < 0x80)
            continue;
        int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        uint32_t least = more == 3 ? 0x10000 : more == 2 ? 0x800 : 0x80;
        if (first < 0xc0 || first >= 0xf8)
            return false;
        uint32_t code = first & (0x3f >> more);
        for (; more; more--, p++) {
            if ((*p & 0xc0) != 0x80)
                return false;
            code = code << 6 | (*p & 0x3f);
        }
        if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
    }
    return true;
}

typedef struct {
    const uint8_t *start, *end; /* between the quotes; no end if it is not proper */
    bool escaped;
} Text;

/* The text whose opening quote is at p. */
static inline Text text_at(const uint8_t *p)
{
    Text text = {p + 1, NULL, false};
    uint64_t seen = 0;
    for (p++;;) {
        uint64_t bytes = eight_bytes(p);
        uint64_t stops =
            zero_bytes(bytes ^ EACH_BYTE * '"') | zero_bytes(bytes ^ EACH_BYTE * '\\') | below_space(bytes);
        if (!stops) {
            seen |= bytes;
            p += 8;
            continue;
        }
        int place = __builtin_ctzll(stops) / 8;
        if (place)
            seen |= bytes << (64 - 8 * place);
        p += place;
        if (*p == '"')
            break;
        if (*p != '\\' || p[1] < ' ')
            return text;
        text.escaped = true;
        p += 2;
    }
    /* Of a byte after a backslash nothing is seen, but none above ASCII is allowed there. */
    if (!(seen & HIGH_BITS) || is_utf8(text.start, p))
        text.end = p;
    return text;
}

static int32_t four_hex_digits(const uint8_t *p)
{
    int32_t number = 0;
    for (int place = 0; place < 4; place++) {
        uint8_t byte = p[place], lower = byte | 0x20;
        if (is_digit(byte))
            number = number << 4 | (byte - '0');
        else if (lower >= 'a' && lower <= 'f')
            number = number << 4 | (lower - 'a' + 10);
        else
            return -1;
    }
    return number;
}

static int encoded(int32_t code, uint8_t *out)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = (uint8_t)(0xff00 >> (more + 1) | code >> 6 * more);
    for (int place = 1; place <= more; place++)
        out[place] = 0x80 | (code >> 6 * (more - place) & 0x3f);
    return more + 1;
}

int32_t unescaped(const uint8_t *p, const uint8_t *end, uint8_t *out)
{
    static const char ESCAPES[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* what is written, and what it stands for */
    uint8_t nowhere[4];
    int32_t length = 0;
    while (p < end) {
        if (*p != '\\') {
            if (out)
                out[length] = *p;
            length++;
            p++;
            continue;
        }
        uint8_t letter = p[1];
        p += 2;
        int32_t code = -1;
        if (letter == 'u') {
            code = four_hex_digits(p);
            p += 4;
            if (code >= 0xd800 && code < 0xe000) { /* half of a pair */
                int32_t other = p[0] == '\\' && p[1] == 'u' ? four_hex_digits(p + 2) : -1;
                if (code >= 0xdc00 || other < 0xdc00 || other >= 0xe000)
                    return -1;
                code = 0x10000 + ((code - 0xd800) << 10) + (other - 0xdc00);
                p += 6;
            }
        } else {
            for (const char *pair = ESCAPES; *pair; pair += 2)
                if (*pair == letter)
                    code = pair[1];
        }
        if (code < 0)
            return -1;
        length += encoded(code, out ? out + length : nowhere);
    }
    return length;
}

/* Where the number at p ends; NULL if there is none. Whole numbers beyond 64 bits are like those with a fraction. */
static const uint8_t *after_number(const uint8_t *p, uint8_t *kind)
{
    bool is_negative = *p == '-';
    const uint8_t *first = p + is_negative;
    p = first;
    if (!is_digit(*p))
        return NULL;
    if (*p == '0')
        p++;
    else
        while (is_digit(*p))
            p++;
    const char *largest = is_negative ? "9223372036854775808" : "9223372036854775807";
    bool fits = p - first < 19 || (p - first == 19 && memcmp(first, largest, 19) <= 0);
    *kind = fits ? INTEGER : NUMBER;
    if (*p == '.') {
        *kind = NUMBER;
        if (!is_digit(*++p))
            return NULL;
        while (is_digit(*p))
            p++;
    }
    if (*p == 'e' || *p == 'E') {
        *kind = NUMBER;
        p++;
        if (*p == '+' || *p == '-')
            p++;
        if (!is_digit(*p))
            return NULL;
        while (is_digit(*p))
            p++;
    }
    return p;
}

/* Where true, false or null at p ends; NULL if none of them is there. */
static const uint8_t *after_word(const uint8_t *p)
{
    if (*p == 'f')
        return memcmp(p, "false", 5) ? NULL : p + 5;
    return memcmp(p, "true", 4) && memcmp(p, "null", 4) ? NULL : p + 4;
}

static bool is_word(uint8_t first)
{
    return first == 't' || first == 'f' || first == 'n';
}

/* The objects and arrays that are open within an array. */
typedef struct {
    int depth; /* of the innermost; 0 is the array itself */
    int keys_held;
    int first_key[MAX_ARRAY_DEPTH];
    bool is_object[MAX_ARRAY_DEPTH];
    uint64_t key_hashes[MAX_ARRAY_KEYS]; /* of all objects that are open */
    bool spaced;
} Nested;

static const uint8_t *after_spaces_in(Nested *nested, const uint8_t *p)
{
    const uint8_t *q = after_spaces(p);
    nested->spaced |= q != p;
    return q;
}

/* Where the key at p and its colon end; NULL if there is none, or if the object may have had it before. */
static const uint8_t *after_key(Nested *nested, const uint8_t *p)
{
    Text key = *p == '"' ? text_at(p) : (Text){NULL, NULL, false};
    if (!key.end || key.escaped || nested->keys_held == MAX_ARRAY_KEYS)
        return NULL;
    uint64_t hashed = hash(key.start, key.end - key.start, 0);
    for (int place = nested->first_key[nested->depth]; place < nested->keys_held; place++)
        if (nested->key_hashes[place] == hashed)
            return NULL;
    nested->key_hashes[nested->keys_held++] = hashed;
    p = after_spaces_in(nested, key.end + 1);
    return *p == ':' ? after_spaces_in(nested, p + 1) : NULL;
}

/* Where a value that is neither an object nor an array ends; NULL where it may be written differently again. */
static const uint8_t *after_scalar(const uint8_t *p)
{
    if (*p == '"') {
        Text text = text_at(p);
        return text.end && !text.escaped ? text.end + 1 : NULL;
    }
    if (is_word(*p))
        return after_word(p);
    uint8_t kind;
    const uint8_t *end = after_number(p, &kind);
    return end && end - p == 2 && *p == '-' && p[1] == '0' ? NULL : end;
}

static uint8_t closing(const Nested *nested)
{
    return nested->is_object[nested->depth] ? '}' : ']';
}

/* Where the array at p ends; NULL if it is not proper, or not usual. */
static const uint8_t *after_array(const uint8_t *p, bool *spaced)
{
    Nested nested;
    nested.depth = -1;
    nested.keys_held = 0;
    nested.spaced = false;
    for (;;) { /* a value begins at p */
        if (*p == '[' || *p == '{') {
            if (++nested.depth == MAX_ARRAY_DEPTH)
                return NULL;
            nested.is_object[nested.depth] = *p == '{';
            nested.first_key[nested.depth] = nested.keys_held;
            p = after_spaces_in(&nested, p + 1);
            if (*p != closing(&nested)) {
                if (nested.is_object[nested.depth] && !(p = after_key(&nested, p)))
                    return NULL;
                continue;
            }
        } else {
            p = after_scalar(p);
            if (!p)
                return NULL;
            p = after_spaces_in(&nested, p);
        }
        while (*p == closing(&nested)) {
            p++;
            nested.keys_held = nested.first_key[nested.depth];
            if (!nested.depth--) {
                *spaced = nested.spaced;
                return p;
            }
            p = after_spaces_in(&nested, p);
        }
        if (*p != ',')
            return NULL;
        p = after_spaces_in(&nested, p + 1);
        if (nested.is_object[nested.depth] && !(p = after_key(&nested, p)))
            return NULL;
    }
}

/* The place of a key in an object; -1 if it is new and there is no room. Reads up to seven bytes after the key. */
EXPORT int32_t place_of_key(Places *places, int32_t parent, const uint8_t *key, int32_t length)
{
    uint64_t seed = places->seed + (uint64_t)parent * 0x9e3779b97f4a7c15u;
    uint32_t slot = (uint32_t)hash(key, length, seed) & (uint32_t)places->slots_mask;
    for (int32_t place; (place = places->slots[slot]); slot = (slot + 1) & (uint32_t)places->slots_mask)
        if (places->parent[place] == parent && places->key_length[place] == length &&
            !memcmp(places->keys + places->key_start[place], key, (size_t)length))
            return place;
    if (places->count == places->capacity || length > places->keys_capacity - places->keys_used)
        return -1;
    int32_t place = places->count++;
    places->slots[slot] = place;
    places->parent[place] = parent;
    places->key_start[place] = places->keys_used;
    places->key_length[place] = length;
    memcpy(places->keys + places->keys_used, key, (size_t)length);
    places->keys_used += length;
    return place;
}

/* The value at p that is neither null nor an object: where it ends, what it is and which bytes of the text it takes. */
static const uint8_t *after_value(const uint8_t *p, uint8_t *kind, const uint8_t **start, const uint8_t **end)
{
    *start = p;
    if (*p == '"') {
        Text text = text_at(p);
        if (!text.end || (text.escaped && unescaped(text.start, text.end, NULL) < 0))
            return NULL;
        *kind = text.escaped ? TEXT | ESCAPED : TEXT;
        *start = text.start;
        *end = text.end;
        return text.end + 1;
    }
    if (*p == '[') {
        bool spaced = false;
        p = after_array(p, &spaced);
        *kind = spaced ? JSON | SPACED : JSON;
    } else if (is_word(*p)) {
        p = after_word(p);
        *kind = BOOLEAN;
    } else {
        p = after_number(p, kind);
    }
    *end = p;
    return p;
}

/* Whether a text is empty, or an array, or arrays of one element around either. */
static bool says_nothing(uint8_t kind, const uint8_t *p, const uint8_t *end)
{
    if ((kind & KIND) == TEXT)
        return p == end;
    if ((kind & KIND) != JSON)
        return false;
    while (*p == '[')
        p = after_spaces(p + 1);
    if (p[0] == '"' && p[1] == '"')
        p = after_spaces(p + 2);
    while (p < end && *p == ']')
        p = after_spaces(p + 1);
    return p >= end;
}

/* Read one line; false if it is left to the exact reader. There is room for all the values that it can have. */
static bool read_line(Places *places, Values *values, const Lines *lines, int64_t number)
{
    const uint8_t *p = after_spaces(lines->text + lines->start[number]);
    int32_t outer[MAX_DEPTH], parent = 0;
    int depth = 0;
    int64_t line = ++places->line, value = values->count;
    if (*p != '{')
        return false;
    p = after_spaces(p + 1);
    for (;;) { /* a key begins at p */
        Text key = *p == '"' ? text_at(p) : (Text){NULL, NULL, false};
        if (!key.end || key.escaped)
            return false;
        int32_t place = place_of_key(places, parent, key.start, (int32_t)(key.end - key.start));
        if (place < 0 || places->met[place] == line) /* the second time in one object */
            return false;
        places->met[place] = line;
        p = after_spaces(key.end + 1);
        if (*p != ':')
            return false;
        p = after_spaces(p + 1);
        if (*p == '{') {
            p = after_spaces(p + 1);
            if (*p != '}') {
                if (depth == MAX_DEPTH)
                    return false;
                outer[depth++] = parent;
                parent = place;
                continue;
            }
            if (!places->may_be_empty[place])
                return false;
            p++;
        } else if (*p == 'n') {
            p = after_word(p);
            if (!p)
                return false;
        } else {
            const uint8_t *start, *end;
            p = after_value(p, &values->kind[value], &start, &end);
            if (!p)
                return false;
            if (!places->skip_empty || !says_nothing(values->kind[value], start, end)) {
                if (place <= places->heads && (place > USER_ID || (values->kind[value] & KIND) == TEXT))
                    lines->heads[number * places->heads + place - 1] = (int32_t)value;
                values->place[value] = place;
                values->start[value] = (int32_t)(start - lines->text);
                values->length[value++] = (int32_t)(end - start);
            }
        }
        for (p = after_spaces(p); *p == '}'; p = after_spaces(p)) {
            p++;
            if (!depth) {
                values->count = value;
                return after_spaces(p) == lines->text + lines->end[number];
            }
            parent = outer[--depth];
        }
        if (*p != ',')
            return false;
        p = after_spaces(p + 1);
    }
}

/* Read lines from the given one on, until all are read or there may be no room for the values of the next. */
EXPORT int64_t scan(Places *places, Values *values, const Lines *lines, int64_t from)
{
    for (int64_t number = from; number < lines->count; number++) {
        if (values->capacity - values->count <= (lines->end[number] - lines->start[number]) / SHORTEST_VALUE)
            return number;
        for (int32_t head = 0; head < places->heads; head++)
            lines->heads[number * places->heads + head] = -1;
        int64_t first = lines->first_value[number] = values->count;
        lines->whole[number] = read_line(places, values, lines, number);
        if (!lines->whole[number])
            values->count = first;
        lines->first_value[number + 1] = values->count;
    }
    return lines->count;
}

/* What this was built from; library.py compares. */
EXPORT uint64_t source(void)
{
    return SOURCE;
}
