/* Rows as JSON objects, written row by row from the buffers of their Arrow columns. */
#include "json_texts.h"
#include "memory.h"
#include "builder.h"
#include "digits.h"
#include "double_text.h"
#include "json_value.h"

enum { PIECE = 1023 }; /* bytes of text or bytes that are written at once: a multiple of 3 */

typedef enum { WRITTEN, NO_MEMORY, OUT_OF_RANGE, TOO_LARGE } Result;

/* A column and its buffers, each of which has all rows. */
typedef struct {
    JsonForm form;
    int is_quoted;
    const char *before; /* what comes before a value: the column's name */
    Py_ssize_t before_bytes, first; /* the place of the first row */
    Py_buffer validity, offsets, values;
} Field;

static int is_variable(const Field *field)
{
    return field->form.width == 0;
}

static int has_bit(const Py_buffer *bits, Py_ssize_t i)
{
    return ((const uint8_t *)bits->buf)[i / 8] >> (i % 8) & 1;
}

typedef struct {
    Field *fields;
    Py_ssize_t count, rows;
    size_t row_bytes; /* at most, without text and bytes */
    Py_buffer absent, powers;
    Py_ssize_t first_absent, most_bytes;
} Table;

/* Return `into`, or where what was written up to it is now, with room for `size` bytes and a row; NULL
 * without memory. */
static uint8_t *with_room(const Table *table, Builder *texts, const uint8_t *into, size_t size)
{
    texts->size = (size_t)(into - texts->values);
    return room_for(texts, size + table->row_bytes);
}

/* Write text or bytes and return their end; NULL with `result`, which says NO_MEMORY before. */
static uint8_t *put_variable(const Table *table, Builder *texts, uint8_t *into, const Field *field,
                             Py_ssize_t row, Result *result)
{
    int64_t ends[2];
    memcpy(ends, (const uint8_t *)field->offsets.buf + row * (Py_ssize_t)sizeof *ends, sizeof ends);
    if (ends[0] < 0 || ends[0] > ends[1] || ends[1] > field->values.len) {
        *result = OUT_OF_RANGE;
        return NULL;
    }
    const uint8_t *at = (const uint8_t *)field->values.buf + ends[0];
    for (size_t rest = (size_t)(ends[1] - ends[0]), piece; rest; rest -= piece, at += piece) {
        piece = rest < PIECE ? rest : PIECE;
        into = with_room(table, texts, into, 6 * piece);
        if (into == NULL)
            return NULL;
        into = field->form.output == TEXT ? put_text(into, at, piece, SHORT_ESCAPES) : put_base64(into, at, piece);
    }
    return into;
}

/* Write a value after its column's name; otherwise as the function above. */
static uint8_t *put_field(const Table *table, Builder *texts, uint8_t *into, const Field *field,
                          Py_ssize_t row, Result *result)
{
    into = put_bytes(into, field->before, (size_t)field->before_bytes);
    if (field->validity.buf != NULL && !has_bit(&field->validity, row))
        return put_bytes(into, "null", 4);
    if (field->is_quoted)
        *into++ = '"';
    if (is_variable(field))
        into = put_variable(table, texts, into, field, row, result);
    else {
        const uint8_t *at = (const uint8_t *)field->values.buf + row * field->form.width;
        into = put_fixed(into, &field->form, at, table->powers.buf);
        if (into == NULL)
            *result = OUT_OF_RANGE;
    }
    if (into != NULL && field->is_quoted)
        *into++ = '"';
    return into;
}

/* Write all rows and where each ends; a row that is absent has no bit set in `validity`. */
static Result write_rows(const Table *table, Builder *texts, int32_t *ends, uint8_t *validity)
{
    Result result = NO_MEMORY;
    uint8_t *into = texts->values;
    *ends++ = 0;
    for (Py_ssize_t row = 0; row < table->rows; row++) {
        if (validity == NULL || !has_bit(&table->absent, table->first_absent + row)) {
            into = with_room(table, texts, into, 0);
            if (into != NULL)
                *into++ = '{';
            const Field *field = table->fields;
            for (; into != NULL && field < table->fields + table->count; field++)
                into = put_field(table, texts, into, field, field->first + row, &result);
            if (into == NULL)
                return result;
            *into++ = '}';
            if (validity != NULL)
                validity[row / 8] |= (uint8_t)(1 << row % 8);
        }
        if (into - texts->values > table->most_bytes)
            return TOO_LARGE;
        ends[row] = (int32_t)(into - texts->values);
    }
    texts->size = (size_t)(into - texts->values);
    return WRITTEN;
}

/* Return the bytes of the texts, about: a number has up to three for each of its own. */
static size_t estimate(const Table *table)
{
    size_t row = 2, all = 0, most = (size_t)table->most_bytes;
    for (const Field *field = table->fields; field < table->fields + table->count; field++) {
        row += (size_t)(field->before_bytes + 3 * field->form.width + 2);
        all += is_variable(field) ? (size_t)field->values.len : 0;
    }
    all += row * (size_t)table->rows;
    return all < most ? all + 1 : most + 1;
}

/* --- Python ------------------------------------------------------------------------------------------- */

/* True if the buffers have all rows. */
static int is_whole(const Field *field, Py_ssize_t rows)
{
    if (field->first < 0 || field->first > PY_SSIZE_T_MAX - 8 - rows)
        return 0;
    Py_ssize_t end = field->first + rows;
    if (field->validity.buf != NULL && (end + 7) / 8 > field->validity.len)
        return 0;
    if (is_variable(field))
        return rows == 0 || field->offsets.len / (Py_ssize_t)sizeof(int64_t) > end;
    return field->values.len / field->form.width >= end;
}

/* Get a column, whose buffers have to be released; -1 with an exception. */
static int get_field(Field *field, PyObject *given, Py_ssize_t rows)
{
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a column is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "iiipy#nz*z*z*", &field->form.output, &field->form.width, &field->form.scale,
                          &field->is_quoted, &field->before, &field->before_bytes, &field->first,
                          &field->validity, &field->offsets, &field->values))
        return -1;
    if (is_json_form(&field->form) && is_whole(field, rows))
        return 0;
    PyErr_SetString(PyExc_ValueError, "a column's buffers don't have its rows");
    return -1;
}

static int get_fields(Table *table, PyObject *columns)
{
    table->fields = PyMem_Calloc((size_t)PyTuple_GET_SIZE(columns) + 1, sizeof *table->fields);
    if (table->fields == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    table->row_bytes = 2; /* the braces */
    for (; table->count < PyTuple_GET_SIZE(columns); table->count++) {
        Field *field = &table->fields[table->count];
        if (get_field(field, PyTuple_GET_ITEM(columns, table->count), table->rows) < 0)
            return -1;
        table->row_bytes += (size_t)field->before_bytes + LONGEST_FIXED + 2;
    }
    return 0;
}

static void release(Table *table, PyObject *columns)
{
    for (Py_ssize_t i = 0; table->fields != NULL && i < PyTuple_GET_SIZE(columns); i++) {
        PyBuffer_Release(&table->fields[i].validity);
        PyBuffer_Release(&table->fields[i].offsets);
        PyBuffer_Release(&table->fields[i].values);
    }
    PyMem_Free(table->fields);
    PyBuffer_Release(&table->absent);
    PyBuffer_Release(&table->powers);
}

/* Return (validity or None, offsets, values), written without the GIL. */
static PyObject *written(const Table *table)
{
    size_t ends_bytes = ((size_t)table->rows + 1) * sizeof(int32_t), bits_bytes = (size_t)table->rows / 8 + 1;
    Builder texts = {0};
    Result result = NO_MEMORY;
    void *ends = NULL, *validity = NULL;
    Py_BEGIN_ALLOW_THREADS
    ends = take_memory(ends_bytes);
    validity = table->absent.buf == NULL ? NULL : take_memory(bits_bytes);
    texts.values = take_memory(estimate(table));
    if (ends != NULL && texts.values != NULL && (validity != NULL || table->absent.buf == NULL)) {
        texts.room = memory_room(texts.values);
        if (validity != NULL)
            memset(validity, 0, bits_bytes);
        result = write_rows(table, &texts, ends, validity);
    }
    Py_END_ALLOW_THREADS
    PyObject *made = NULL;
    if (result == NO_MEMORY)
        PyErr_NoMemory();
    else if (result == TOO_LARGE)
        PyErr_SetString(PyExc_OverflowError, "the texts are too large for one array");
    else if (result == OUT_OF_RANGE)
        PyErr_SetString(PyExc_ValueError, "a value is to be written by Python");
    else
        made = Py_BuildValue("(NNN)",
                             validity == NULL ? Py_NewRef(Py_None) : buffer_of(&validity, bits_bytes),
                             buffer_of(&ends, ends_bytes), buffer_of((void **)&texts.values, texts.size));
    give_memory(validity);
    give_memory(ends);
    give_memory(texts.values);
    return made;
}

PyObject *json_texts(PyObject *module, PyObject *arguments)
{
    PyObject *columns, *made = NULL;
    Table table = {0};
    if (!PyArg_ParseTuple(arguments, "O!nz*ny*n", &PyTuple_Type, &columns, &table.rows, &table.absent,
                          &table.first_absent, &table.powers, &table.most_bytes))
        return NULL;
    if (table.rows < 0 || table.most_bytes < 0 || table.most_bytes > INT32_MAX ||
        table.powers.len != (MOST_POWER - LEAST_POWER + 1) * POWER_BYTES || table.first_absent < 0 ||
        (table.absent.buf != NULL && table.absent.len * 8 - table.first_absent < table.rows))
        PyErr_SetString(PyExc_ValueError, "the rows or the powers of ten aren't whole");
    else if (get_fields(&table, columns) == 0)
        made = written(&table);
    release(&table, columns);
    return made;
}
