/* A column: how its stored bytes are read, and what is made of them. */
#ifndef TIDEMILL_COLUMN_H
#define TIDEMILL_COLUMN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef __int128 int128;

/* How a value is stored. The names are attributes of the module. */
#define INPUTS(X)                                                                                        \
    X(LITTLE_ENDIAN_INT)  /* `size` bytes, the low one first; signed if it becomes INT */                \
    X(BIG_ENDIAN_INT)     /* `size` bytes, unsigned */                                                   \
    X(YEAR_BYTE)          /* years since 1900; 0 is the year 0 */                                        \
    X(FLOAT_BYTES)                                                                                       \
    X(DOUBLE_BYTES)                                                                                      \
    X(PACKED_DECIMAL)     /* `digits`, of which `scale` are after the point */                           \
    X(PACKED_DATE)                                                                                       \
    X(PACKED_DATETIME)    /* with a fraction of `scale` digits; so are the next two */                   \
    X(PACKED_TIMESTAMP)                                                                                  \
    X(PACKED_TIME)                                                                                       \
    X(UNIX_SECONDS)       /* 4 bytes, the low one first */                                               \
    X(COUNTED)            /* a length of `size` bytes, the low one first, then as many bytes */          \
    X(FIXED)              /* `size` bytes, read by `reader` */                                           \
    X(SENT_DECIMAL)       /* counted in a row of the binary protocol, as are those that follow; digits */ \
    X(SENT_DATE)                                                                                         \
    X(SENT_MOMENT)        /* a date and time */                                                          \
    X(SENT_TIME)                                                                                         \
    X(SENT_BITS)          /* the high byte first */                                                      \
    X(SENT_BYTES)                                                                                        \
    X(TIDB_INT)           /* a cell of a row of TiDB, as are those that follow */                        \
    X(TIDB_UINT)                                                                                         \
    X(TIDB_FLOAT)                                                                                        \
    X(TIDB_DECIMAL)                                                                                      \
    X(TIDB_MOMENT)        /* a date, or a date and time, of which `scale` digits are shown */            \
    X(TIDB_DURATION)                                                                                     \
    X(TIDB_BYTES)                                                                                        \
    X(TIDB_JSON)

/* What is made of a value. */
#define OUTPUTS(X)                                                                                       \
    X(INT)                                                                                               \
    X(UINT)                                                                                              \
    X(DOUBLE)                                                                                            \
    X(DECIMAL)                                                                                           \
    X(DATE)                                                                                              \
    X(DATETIME)                                                                                          \
    X(TIMESTAMP)                                                                                         \
    X(DURATION)                                                                                          \
    X(MEMBER)   /* an enum's member: `members` is a tuple, by number */                                  \
    X(MEMBERS)  /* a set: `members` is a function of its bits */                                         \
    X(TEXT)     /* UTF-8 */                                                                              \
    X(ASCII)    /* text of another charset; that of bytes above 127 is made by `reader` */               \
    X(BYTES)    /* padded with zeros up to `padding` bytes */                                            \
    X(OTHER)    /* made by `reader` */

#define AS_MEMBER(name) name,
enum input { INPUTS(AS_MEMBER) };
enum output { OUTPUTS(AS_MEMBER) };
#undef AS_MEMBER

enum flag { NULLABLE = 1, HIDDEN = 2 };

/* Digits of the largest decimal that is read here; `reader` reads the others. */
#define MAX_DIGITS 38

typedef struct {
    int input, output;
    int size;
    int fixed; /* bytes that each value in a row image has; with COUNTED those of the length */
    int digits, scale;
    int padding;
    int width; /* bytes of an element of the Arrow array */
    int128 limit; /* above the largest decimal of `digits` */
    int nullable, hidden;
    PyObject *reader; /* the function of a value's stored bytes that makes any value, regular or not */
    PyObject *members;
    PyObject *unit; /* of a decimal's last digit */
} Column;

/* Bytes of a row image up to a length of `length` bytes, of whose value the next step follows. */
typedef struct {
    Py_ssize_t fixed;
    int length; /* 0 at the end of the row */
} Step;

typedef struct {
    PyObject_HEAD
    Py_ssize_t count, visible;
    Column *columns;
    Step *steps; /* of a row image of all columns, without NULLs */
    Py_ssize_t step_count;
} Layout;

extern PyTypeObject LayoutType;

#endif
