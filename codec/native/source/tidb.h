/* Rows of TiDB, in formats 1 and 2: where their columns are. */
#ifndef TIDEMILL_TIDB_H
#define TIDEMILL_TIDB_H

#include "block.h"
#include "value.h"

/* Where a column's value is if a row lacks it. */
#define ROLES(X)                                                                                         \
    X(IN_VALUE) /* nowhere: it has the column's initial value */                                         \
    X(IN_HANDLE) /* it is the integer handle in the key */                                               \
    X(REQUIRED) /* nowhere: such a row is an error */

#define AS_MEMBER(name) name,
enum role { ROLES(AS_MEMBER) };
#undef AS_MEMBER

typedef struct {
    int64_t id;
    int role;
    PyObject *initial; /* the cell of the initial value; None for NULL, NULL if there is none */
    Py_ssize_t part;   /* its number among the columns of a clustered key; -1 if it isn't one of them */
} Origin;

typedef struct {
    Py_ssize_t column;
    int is_prefix; /* the key has only the value's begin */
} Part;

typedef struct {
    int64_t id;
    Py_ssize_t column;
} ById;

typedef struct {
    PyObject_HEAD
    Layout *layout;
    Origin *origins; /* for each column */
    ById *by_id;     /* in the order of the ids */
    Py_ssize_t part_count;
    Part *parts; /* of a clustered key, in its order */
    int verifies; /* the checksums of rows */
} TidbLayout;

typedef enum {
    ABSENT,
    NOTHING, /* NULL */
    CELL,    /* bytes, as in format 2 */
    NUMBER   /* as in format 1 and in keys */
} Form;

typedef struct {
    Form form;
    const uint8_t *at;
    Py_ssize_t size;
    uint64_t number;
} Cell;

/* What is kept from one row to the next: most rows have the same head. */
typedef struct {
    const TidbLayout *layout;
    Cell *cells;     /* of the last row, for each column of the layout */
    Cell *parts;     /* of its clustered key */
    int *places;     /* for each column, the number of its value in rows with this head, or one of below */
    uint8_t *head;   /* the bytes up to and including the ids */
    size_t head_bytes, head_room;
    uint8_t *letters; /* the bytes of texts in the key */
    size_t letters_room;
    int has_parts;
    int has_others; /* rows with this head have values of columns that aren't in the layout */
} Rows;

enum { NULL_PLACE = -1, NO_PLACE = -2 };

/* -1 without memory. */
int open_rows(Rows *rows, const TidbLayout *layout);
void close_rows(Rows *rows);

/* Bytes of a row's key or value. */
typedef struct {
    const uint8_t *at, *end;
} Bytes;

/* Find the columns of a row; -1 for a row that isn't regular, which Python is to read, or without memory. */
int find_cells(Rows *rows, Bytes key, Bytes value);

/* Return 0 if two rows have as many columns with a value, and as many that are NULL. */
int may_have_other_columns(Bytes value, Bytes other);

/* Find the columns of a clustered key; -1 as above. */
int find_parts(Rows *rows, Bytes key);

/* Bytes of a key that name the table, the place of a handle in its key, and that key's length. */
enum { TABLE_KEY_BYTES = 9, HANDLE_AT = 11, HANDLE_KEY_BYTES = 19 };

/* True if the key ends with an integer handle. */
static inline int has_handle(Bytes key)
{
    return key.end - key.at == HANDLE_KEY_BYTES && key.at[0] == 't' && key.at[9] == '_' && key.at[10] == 'r';
}

/* True if the row, whose cells were found, has one of the checksums that begin at `at`, or if they aren't to
   be verified. False also if only Python can tell. */
int has_checksum(Rows *rows, Bytes key, Bytes value, const uint8_t *at);

/* Move `at` behind a datum's flag and value, which are put into `cell`; -1 if it isn't regular. */
int next_datum(const uint8_t **at, const uint8_t *end, int *flag, Cell *cell);

enum { FLAG_NULL, FLAG_BYTES, FLAG_COMPACT_BYTES, FLAG_INT, FLAG_UINT, FLAG_FLOAT, FLAG_DECIMAL,
       FLAG_DURATION, FLAG_VARINT, FLAG_UVARINT, FLAG_JSON };

/* The flags of a column's datum in rows of format 1 and in keys. */
int row_flag(const Column *column);
int key_flag(const Column *column);

Outcome read_cell(const Column *column, const Cell *cell, Value *value);

extern PyTypeObject TidbLayoutType;

/* Put bytes into `into`; -1 with an exception for another object. */
int get_bytes(PyObject *bytes, Bytes *into);

/* Read a row; `python` reads one that isn't regular, or says what is wrong with it, and all without a layout. */
PyObject *read_row(Rows *rows, Bytes key, Bytes value, PyObject *python);

typedef struct {
    Bytes key, value, old_value;
} Change;

static inline Change change_at(const Storage *storage, const Entry *entry)
{
    const uint8_t *key = key_of(storage, entry), *value = key + entry->key_bytes;
    const uint8_t *old_value = value + entry->value_bytes;
    return (Change){{key, value}, {value, old_value}, {old_value, old_value + entry->old_bytes}};
}

/* Read a change in one piece: the sizes of its key and its value in four bytes each, these two, and the value
   before. -1 if it isn't whole. */
int unpack_change(Bytes packed, Change *change);

/* Return the number of changes in a tuple of blocks; -1 with an exception. */
Py_ssize_t count_changes(PyObject *blocks);

/* A tuple of blocks to (where each change begins as int64, and the end; the packed changes). */
PyObject *pack_changes(PyObject *module, PyObject *blocks);

/* (layout, packed changes, where each one ends as int32, the number of the first end, for each change whether
   it has such a row, True for the rows after and False for those before) to a list of arrays' buffers. */
PyObject *tidb_packed_columns(PyObject *module, PyObject *arguments);

/* (layout, blocks, True for the rows after and False for those before) to (for each change whether it has such a
   row; a list of arrays' buffers, empty if none has). */
PyObject *tidb_columns(PyObject *module, PyObject *arguments);

/* (layout, pairs of key and value, function of a pair) to a list of tuples. */
PyObject *tidb_rows(PyObject *module, PyObject *arguments);

/* Of (block, tables, type, of the last also the type Rows), where `tables` maps the prefix of each table's keys to (layout or None, table,
   function of a key and a value, KvBlock), or to None: its changes are left out. Of these functions the first
   returns a list of RowChange, with None for a change without effect or of a table that is left out; the others
   return the commit ts, the start ts and the content of each transaction: changes, or Rows of runs (KvRun). */
PyObject *tidb_changes(PyObject *module, PyObject *arguments);
PyObject *tidb_transactions(PyObject *module, PyObject *arguments);
PyObject *tidb_runs(PyObject *module, PyObject *arguments);

#endif
