/* The values of lines, as columns. */
#include "lines.h"

typedef struct {
    const uint8_t *start;
    int32_t length;
} Span;

static Span span_of(const Values *values, const Lines *lines, int32_t value)
{
    return (Span){lines->text + values->start[value], values->length[value]};
}

/* Whether an id may be nothing but blanks, as one that begins with an escape or a character that is not ASCII may be:
 * whoever reads the line by itself decides. */
static bool may_be_blank(Span id)
{
    return !id.length || *id.start <= ' ' || *id.start == '\\' || *id.start >= 0x80;
}

/* Find what each whole line is, by its type and its event; -1 for a line without a type or an id, or without room.
 *
 * A name is the text of the type and a newline; if the event is a text, that and another newline.
 */
EXPORT void name_lines(Names *names, const Values *values, const Lines *lines, int32_t heads, int32_t *name_of)
{
    uint32_t mask = (uint32_t)names->slots_mask;
    for (int64_t number = 0; number < lines->count; number++) {
        const int32_t *head = lines->heads + number * heads;
        name_of[number] = -1;
        if (!lines->whole[number] || head[TYPE] < 0 || head[MESSAGE_ID] < 0 ||
            may_be_blank(span_of(values, lines, head[MESSAGE_ID])))
            continue;
        bool has_event = head[EVENT] >= 0;
        Span type = span_of(values, lines, head[TYPE]);
        Span event = has_event ? span_of(values, lines, head[EVENT]) : (Span){type.start, 0};
        int32_t length = type.length + 1 + (has_event ? event.length + 1 : 0);
        uint64_t hashed = hash(event.start, event.length, hash(type.start, type.length, names->seed + has_event));
        uint32_t slot = (uint32_t)hashed & mask;
        int32_t name;
        for (; (name = names->slots[slot]) >= 0; slot = (slot + 1) & mask) {
            const uint8_t *known = names->texts + names->start[name];
            if (names->length[name] == length && known[type.length] == '\n' &&
                !memcmp(known, type.start, (size_t)type.length) &&
                !memcmp(known + type.length + 1, event.start, (size_t)event.length))
                break;
        }
        if (name < 0) {
            if (names->count == names->capacity || length > names->texts_capacity - names->texts_used)
                continue;
            uint8_t *text = names->texts + names->texts_used;
            memcpy(text, type.start, (size_t)type.length);
            text[type.length] = '\n';
            if (has_event) {
                memcpy(text + type.length + 1, event.start, (size_t)event.length);
                text[length - 1] = '\n';
            }
            name = names->slots[slot] = names->count++;
            names->start[name] = names->texts_used;
            names->length[name] = length;
            names->texts_used += length;
        }
        name_of[number] = name;
    }
}

/* The column of a value; -1 if it is new and there is no room. */
static int32_t column_of_value(Columns *columns, int32_t route, int32_t place, uint8_t kind)
{
    uint32_t mask = (uint32_t)columns->slots_mask;
    uint64_t key = (uint64_t)route << 35 | (uint64_t)place << 3 | kind;
    uint32_t slot = (uint32_t)mixed(key ^ columns->seed, 0xa0761d6478bd642fu) & mask;
    int32_t column;
    for (; (column = columns->slots[slot]) >= 0; slot = (slot + 1) & mask)
        if (columns->route[column] == route && columns->place[column] == place && columns->kind[column] == kind)
            return column;
    if (columns->count == columns->capacity)
        return -1;
    column = columns->slots[slot] = columns->count++;
    columns->route[column] = route;
    columns->place[column] = place;
    columns->kind[column] = kind;
    return column;
}

/* Find the column of each value of the lines that have a route, and the row of each such line.
 *
 * A line with a value for a column that is not usable, or for which there is no room, loses its route. A value that no
 * table has gets no column: -1.
 */
EXPORT void find_columns(Columns *columns, const Values *values, const Lines *lines, int32_t *route_of,
                         int32_t *column_of, int32_t *row_of, int32_t *rows_of_route)
{
    for (int64_t number = 0; number < lines->count; number++) {
        int32_t route = route_of[number];
        if (route < 0)
            continue;
        int64_t first = lines->first_value[number], end = lines->first_value[number + 1];
        bool usable = true;
        for (int64_t value = first; value < end; value++) {
            int32_t column = column_of_value(columns, route, values->place[value], values->kind[value] & KIND);
            column_of[value] = column;
            usable &= column >= 0 && columns->use[column] != UNUSABLE;
        }
        if (!usable) {
            route_of[number] = -1;
            continue;
        }
        row_of[number] = rows_of_route[route]++;
        for (int64_t value = first; value < end; value++) {
            if (columns->use[column_of[value]] == UNUSED) {
                column_of[value] = -1;
                continue;
            }
            columns->values[column_of[value]]++;
            columns->bytes[column_of[value]] += values->length[value];
        }
    }
}

static int64_t whole_number(Span digits)
{
    bool is_negative = *digits.start == '-';
    uint64_t number = 0;
    for (int32_t place = is_negative; place < digits.length; place++)
        number = number * 10 + (uint64_t)(digits.start[place] - '0');
    return (int64_t)(is_negative ? 0 - number : number);
}

static int32_t without_spaces(Span json, uint8_t *out)
{
    int32_t length = 0;
    bool in_text = false;
    for (int32_t place = 0; place < json.length; place++) {
        uint8_t byte = json.start[place];
        if (byte == '"')
            in_text = !in_text; /* there are no escapes */
        if (in_text || (byte != ' ' && byte != '\t' && byte != '\r'))
            out[length++] = byte;
    }
    return length;
}

static void set_bit(uint8_t *bits, int32_t place)
{
    bits[place >> 3] |= (uint8_t)(1 << (place & 7));
}

static int32_t written(Span text, uint8_t kind, uint8_t *out)
{
    if (kind & ESCAPED)
        return unescaped(text.start, text.start + text.length, out);
    if (kind & SPACED)
        return without_spaces(text, out);
    memcpy(out, text.start, (size_t)text.length);
    return text.length;
}

/* Write all values of the lines that have a route to their columns. What is written to was all zero. */
EXPORT void fill(const Filled *filled, const Values *values, const Lines *lines, const int32_t *route_of,
                 const int32_t *column_of, const int32_t *row_of)
{
    uint8_t *out = filled->out;
    for (int64_t number = 0; number < lines->count; number++) {
        if (route_of[number] < 0)
            continue;
        for (int64_t value = lines->first_value[number]; value < lines->first_value[number + 1]; value++) {
            int32_t column = column_of[value], row = row_of[number];
            if (column < 0)
                continue;
            Span text = {lines->text + values->start[value], values->length[value]};
            if (filled->validity_at[column] >= 0)
                set_bit(out + filled->validity_at[column], row);
            if (filled->rows_at[column] >= 0) { /* of these, every value counts as a row */
                int32_t count = filled->next[column];
                memcpy(out + filled->rows_at[column] + 4 * (int64_t)count, &row, 4);
                row = count;
            }
            uint8_t *to = out + filled->offsets_at[column];
            if ((values->kind[value] & KIND) == INTEGER) {
                int64_t whole = whole_number(text);
                memcpy(to + 8 * (int64_t)row, &whole, 8);
            } else if ((values->kind[value] & KIND) == BOOLEAN) {
                if (*text.start == 't')
                    set_bit(to, row);
            } else {
                for (int32_t empty = filled->next[column]; empty <= row; empty++)
                    memcpy(to + 4 * (int64_t)empty, &filled->used[column], 4);
                uint8_t *data = out + filled->data_at[column] + filled->used[column];
                filled->used[column] += written(text, values->kind[value], data);
            }
            filled->next[column] = row + 1;
        }
    }
}

/* Write where the last texts end, and the rows without one after them; `rows` of a column is how many it has. */
EXPORT void finish(const Filled *filled, int64_t columns, const uint8_t *kind, const int32_t *rows)
{
    for (int64_t column = 0; column < columns; column++) {
        if (filled->offsets_at[column] < 0 || kind[column] == INTEGER || kind[column] == BOOLEAN)
            continue;
        for (int32_t empty = filled->next[column]; empty <= rows[column]; empty++)
            memcpy(filled->out + filled->offsets_at[column] + 4 * (int64_t)empty, &filled->used[column], 4);
    }
}

/* When lines were received, by what they say; `is_told` tells which do. */
EXPORT void receive(const Values *values, const Lines *lines, int32_t heads, int64_t *micros, uint8_t *is_told)
{
    for (int64_t number = 0; number < lines->count; number++) {
        int32_t value = lines->heads[number * heads + RECEIVED_AT];
        is_told[number] = false;
        if (lines->whole[number] && value >= 0) {
            Span text = span_of(values, lines, value);
            is_told[number] = instant_of(text.start, text.length, &micros[number]) != NO_INSTANT;
        }
    }
}
