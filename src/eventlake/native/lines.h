/* Lines of JSON, taken apart into columns.
 *
 *     text ──scan──► values of each line ──name──► the event of each line
 *                        └──column──► the column of each value ──fill──► columns, as Arrow has them
 *
 * `scan` is in json.c, the others are in columns.c; reading/scanner.py calls them, one after the other. What is in
 * texts.c makes values of columns of texts.
 *
 * All memory is the caller's, numpy arrays mostly: nothing here allocates, keeps a pointer, or writes beyond a capacity
 * that it was told. What does not fit, and whatever is unusual about a line, makes the line one that is left to the
 * exact reader (reading/exact_json.py), so there is no error to handle.
 *
 * Each line of a text ends in a newline, and PADDING bytes follow the last. A newline is in no value of JSON, so every
 * loop over a line ends there at the latest.
 */
#ifndef EVENTLAKE_LINES_H
#define EVENTLAKE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No library is linked to: these are what every program has. */
#define memcmp __builtin_memcmp
#define memcpy __builtin_memcpy

#define EXPORT __attribute__((visibility("default")))

enum { PADDING = 16 };

/* Kinds of values, as kinds.py has them; what is more to do than to copy; and the mask that leaves the kind. */
enum { TEXT, INTEGER, NUMBER, BOOLEAN, JSON, ESCAPED = 0x10, SPACED = 0x20, KIND = 0x0f };

/* The keys that were met, as a tree: a place is a key in an object, which is at a place itself. Place 0 is the line. */
typedef struct {
    int32_t *parent, *key_start, *key_length;
    uint8_t *may_be_empty; /* objects there that are empty say nothing */
    int64_t *met;          /* the last line in which it was met */
    int32_t *slots;        /* a hash table of places; 0 where there is none */
    uint8_t *keys;
    int32_t count, capacity, slots_mask, keys_used, keys_capacity;
    int32_t heads;      /* places 1 to `heads` are told of each line */
    int32_t skip_empty; /* whether texts and arrays that are empty say nothing, so that there is no value */
    int64_t line;       /* that is being read, counted over all calls */
    uint64_t seed;      /* of the hash table: nobody can make up keys that collide */
} Places;

/* The values of some lines, in the order of the text. */
typedef struct {
    int32_t *place, *start, *length;
    uint8_t *kind;
    int64_t count, capacity;
} Values;

/* Some lines of a text. */
typedef struct {
    const uint8_t *text;
    const int64_t *start, *end;
    int64_t *first_value; /* of each line, and where those of the last end */
    int32_t *heads;       /* of each line, the values at the first places, most of them only if texts; -1 for none */
    uint8_t *whole;       /* whether all of the line is in its values */
    int64_t count;
} Lines;

/* What lines are: their types with their events, as they are written in the text. */
typedef struct {
    int32_t *start, *length;
    uint8_t *texts;
    int32_t *slots; /* a hash table of names; -1 where there is none */
    int32_t count, capacity, slots_mask, texts_used, texts_capacity;
    uint64_t seed;
} Names;

/* Columns: the values of one kind, at one place, of the lines on one route. */
typedef struct {
    int32_t *route, *place;
    uint8_t *kind, *use;     /* what becomes of values: see below */
    int64_t *values, *bytes; /* that the lines of a text have for it */
    int32_t *slots;          /* a hash table of columns; -1 where there is none */
    int32_t count, capacity, slots_mask;
    uint64_t seed;
} Columns;

/* Uses of a column: a line with a value for it is left; it goes to a table; no table has it. */
enum { UNUSABLE, USED, UNUSED };

/* The first heads. All but the last are texts. */
enum { TYPE, EVENT, MESSAGE_ID, RECEIVED_AT, USER_ID };

/* Where columns are to be written; all places are from the beginning of `out`. */
typedef struct {
    const int64_t *offsets_at;  /* of texts; of the other kinds, where the values are */
    const int64_t *data_at;     /* of texts */
    const int64_t *validity_at; /* a bit for each row; -1 if all rows have a value */
    const int64_t *rows_at; /* the row of each value, if there are few of them; -1 else, with a place for each row */
    int32_t *next;          /* of a column: the row that comes next, or the value */
    int32_t *used;          /* bytes of texts */
    uint8_t *out;
} Filled;

static inline uint64_t eight_bytes(const uint8_t *p)
{
    uint64_t bytes;
    memcpy(&bytes, p, 8);
    return bytes;
}

static inline uint64_t mixed(uint64_t one, uint64_t other)
{
    __uint128_t product = (__uint128_t)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Reads up to seven bytes after the text, and ignores them. */
static inline uint64_t hash(const uint8_t *p, int64_t length, uint64_t seed)
{
    uint64_t state = seed ^ (uint64_t)length * 0x9e3779b97f4a7c15u;
    for (; length >= 8; p += 8, length -= 8)
        state = mixed(state ^ eight_bytes(p), 0xa0761d6478bd642fu);
    if (length)
        state = mixed(state ^ eight_bytes(p) << (64 - 8 * length), 0xe7037ed1a0b428dbu);
    return mixed(state, 0x8ebc6af09c88c6e3u);
}

/* The text that a text with escapes stands for, which is never longer; its length, or -1 if it is not proper. */
int32_t unescaped(const uint8_t *p, const uint8_t *end, uint8_t *out);

/* The microseconds since 1970 that a full ISO-8601 date-time names, as instants.py has them; finer ones are cut. */
enum instant { NO_INSTANT, EXACT_INSTANT, CUT_INSTANT };
enum instant instant_of(const uint8_t *text, int64_t length, int64_t *micros);

#endif
