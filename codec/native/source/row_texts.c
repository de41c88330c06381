/* Texts of rows: constant pieces and the values of columns, joined row by row. */
#include "row_texts.h"
#include "calendar.h"
#include "digits.h"
#include "double_text.h"
#include "json_value.h"
#include "memory.h"
#include "time_text.h"

#include <datetime.h>
#include <math.h>

enum { PIECE = 1023 }; /* bytes of a text that are written at once */
enum { LONGEST_DECIMAL = 64, MILLISECOND_DIGITS = 3 };

static PyObject *decimal_type;

typedef struct {
    PyObject *piece; /* bytes of all rows; NULL: `each` has a piece of each, or the rows */
    PyObject *each;
    Py_ssize_t place; /* of the value in its row */
    int output, scale, is_html, is_number;
    PyObject *members, *before, *after, *null, *write; /* `write` is NULL if `each` has pieces */
} Part;

/* --- a text that grows: what can't, has an exception ------------------------------------------------------ */

typedef struct {
    uint8_t *start, *at, *end; /* of the memory; `at` is the end of what was written */
} Text;

static uint8_t *grown(Text *text, size_t size)
{
    size_t used = (size_t)(text->at - text->start);
    uint8_t *start = grow_memory(text->start, used, 2 * (used + size) + 1024);
    if (start == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *text = (Text){start, start + used, start + memory_room(start)};
    return text->at;
}

/* Return where that many bytes may be written, or NULL. */
static inline uint8_t *room(Text *text, size_t size)
{
    return (size_t)(text->end - text->at) >= size ? text->at : grown(text, size);
}

/* --- values: 1 if it was written, 0 if it isn't regular, -1 with an exception ----------------------------- */

static inline int put(Text *text, const void *bytes, size_t size)
{
    uint8_t *into = room(text, size + 1); /* no bytes have a place, too */
    if (into == NULL)
        return -1;
    text->at = put_bytes(into, bytes, size);
    return 1;
}

static inline int put_object(Text *text, PyObject *bytes)
{
    return put(text, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
}

static int ended(Text *text, uint8_t *end)
{
    text->at = end;
    return 1;
}

static int put_long(Text *text, PyObject *value)
{
    int overflow;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    uint8_t *into = room(text, LONGEST_FIXED);
    if (into == NULL)
        return -1;
    if (overflow)
        return 0;
    if (number < 0)
        *into++ = '-';
    return ended(text, put_number(into, number < 0 ? -(uint64_t)number : (uint64_t)number));
}

/* Write a double that has no exponent, without ".0". */
static int put_float(Text *text, double number, const uint8_t *powers)
{
    uint8_t *into = room(text, LONGEST_FIXED);
    if (into == NULL)
        return -1;
    if (!isfinite(number))
        return 0;
    uint8_t *end = put_double(into, number, powers);
    if (memchr(into, 'e', (size_t)(end - into)) != NULL)
        return 0;
    return ended(text, end - into > 2 && end[-2] == '.' && end[-1] == '0' ? end - 2 : end);
}

/* Write a decimal that has `scale` digits after the point, as a number without the zeros at its end. */
static int put_decimal_object(Text *text, PyObject *value, int scale, int is_number)
{
    PyObject *digits = PyObject_Str(value);
    if (digits == NULL)
        return -1;
    int result = 0;
    Py_ssize_t size = PyUnicode_GET_LENGTH(digits), point = scale ? size - scale - 1 : -1;
    if (PyUnicode_IS_COMPACT_ASCII(digits) && (!scale || point > 0)) {
        const uint8_t *at = PyUnicode_1BYTE_DATA(digits);
        int is_regular = size > 0;
        for (Py_ssize_t i = 0; i < size && is_regular; i++)
            is_regular = i == point ? at[i] == '.' : (at[i] >= '0' && at[i] <= '9') || (at[i] == '-' && i == 0);
        while (is_number && scale && size > point && (at[size - 1] == '0' || size == point + 1))
            size--;
        if (is_regular)
            result = put(text, at, (size_t)size);
    }
    Py_DECREF(digits);
    return result;
}

static int put_escaped(Text *text, const uint8_t *at, size_t size, int is_html)
{
    for (size_t rest = size, piece; rest; rest -= piece, at += piece) {
        piece = rest < PIECE ? rest : PIECE;
        while (piece < rest && piece > 1 && (at[piece] & 0xC0) == 0x80)
            piece--; /* a character stays whole */
        uint8_t *into = room(text, 6 * piece);
        if (into == NULL)
            return -1;
        ended(text, put_text(into, at, piece, is_html ? HTML_ESCAPES : LONG_ESCAPES));
    }
    return 1;
}

static int put_string(Text *text, PyObject *value, int is_html)
{
    if (PyUnicode_IS_COMPACT_ASCII(value))
        return put_escaped(text, PyUnicode_1BYTE_DATA(value), (size_t)PyUnicode_GET_LENGTH(value), is_html);
    Py_ssize_t size;
    const char *at = PyUnicode_AsUTF8AndSize(value, &size);
    if (at == NULL) { /* surrogates */
        PyErr_Clear();
        return 0;
    }
    return put_escaped(text, (const uint8_t *)at, (size_t)size, is_html);
}

static int put_binary(Text *text, PyObject *value)
{
    size_t size = (size_t)PyBytes_GET_SIZE(value);
    uint8_t *into = room(text, 2 * size + 3);
    if (into == NULL)
        return -1;
    return ended(text, put_base64(into, (const uint8_t *)PyBytes_AS_STRING(value), size));
}

/* Write days, or microseconds since 1970 as such or as milliseconds. */
static int put_count(Text *text, int64_t number, int output, int scale)
{
    const int64_t unit = output == DATETIME && scale <= MILLISECOND_DIGITS ? 1000 : 1;
    int64_t count = number / unit - (number % unit < 0);
    uint8_t *into = room(text, LONGEST_FIXED);
    if (into == NULL)
        return -1;
    if (count < 0)
        *into++ = '-';
    return ended(text, put_number(into, count < 0 ? -(uint64_t)count : (uint64_t)count));
}

static int put_moment(Text *text, const Part *part, int64_t number)
{
    if (part->is_number)
        return put_count(text, number, part->output, part->scale);
    uint8_t *into = room(text, LONGEST_TIME);
    if (into == NULL)
        return -1;
    return ended(text, put_time(into, part->output, number, part->scale));
}

static int64_t days_of_date(PyObject *value)
{
    return days_of(PyDateTime_GET_YEAR(value), PyDateTime_GET_MONTH(value), PyDateTime_GET_DAY(value));
}

static int put_datetime(Text *text, const Part *part, PyObject *value)
{
    PyObject *zone = PyDateTime_DATE_GET_TZINFO(value);
    if (zone != Py_None && zone != PyDateTime_TimeZone_UTC)
        return 0;
    int64_t seconds = days_of_date(value) * 86400 + PyDateTime_DATE_GET_HOUR(value) * 3600 +
                      PyDateTime_DATE_GET_MINUTE(value) * 60 + PyDateTime_DATE_GET_SECOND(value);
    return put_moment(text, part, seconds * 1000000 + PyDateTime_DATE_GET_MICROSECOND(value));
}

static int put_timedelta(Text *text, const Part *part, PyObject *value)
{
    int64_t seconds = (int64_t)PyDateTime_DELTA_GET_DAYS(value) * 86400 + PyDateTime_DELTA_GET_SECONDS(value);
    if (seconds > INT64_MAX / 2000000 || seconds < INT64_MIN / 2000000)
        return 0;
    return put_moment(text, part, seconds * 1000000 + PyDateTime_DELTA_GET_MICROSECONDS(value));
}

static int put_regular(Text *text, const Part *part, PyObject *value, const uint8_t *powers)
{
    switch (part->output) {
    case INT:
        return PyLong_CheckExact(value) ? put_long(text, value) : 0;
    case DOUBLE:
        return PyFloat_CheckExact(value) ? put_float(text, PyFloat_AS_DOUBLE(value), powers) : 0;
    case DECIMAL:
        if ((PyObject *)Py_TYPE(value) != decimal_type)
            return 0;
        return put_decimal_object(text, value, part->scale, part->is_number);
    case DATE:
        return PyDate_CheckExact(value) ? put_moment(text, part, days_of_date(value)) : 0;
    case DATETIME:
        return PyDateTime_CheckExact(value) ? put_datetime(text, part, value) : 0;
    case DURATION:
        return PyDelta_CheckExact(value) ? put_timedelta(text, part, value) : 0;
    case TEXT:
        if (PyUnicode_CheckExact(value))
            return put_string(text, value, part->is_html);
        return PyBytes_CheckExact(value) ? put_binary(text, value) : 0;
    default:
        return 0;
    }
}

/* --- parts ------------------------------------------------------------------------------------------------ */

static int put_irregular(Text *text, const Part *part, PyObject *value)
{
    PyObject *values = PyList_New(1);
    if (values == NULL)
        return -1;
    PyList_SET_ITEM(values, 0, Py_NewRef(value));
    PyObject *texts = PyObject_CallOneArg(part->write, values);
    Py_DECREF(values);
    if (texts == NULL)
        return -1;
    int result = -1;
    if (PyList_Check(texts) && PyList_GET_SIZE(texts) == 1 && PyBytes_Check(PyList_GET_ITEM(texts, 0)))
        result = put_object(text, PyList_GET_ITEM(texts, 0));
    else
        PyErr_SetString(PyExc_TypeError, "a writer returns a list of bytes");
    Py_DECREF(texts);
    return result;
}

static int put_value(Text *text, const Part *part, PyObject *value, const uint8_t *powers)
{
    if (value == Py_None)
        return put_object(text, part->null);
    PyObject *shown = part->members == Py_None ? Py_NewRef(value) : PyObject_GetItem(part->members, value);
    if (shown == NULL)
        return -1;
    size_t start = (size_t)(text->at - text->start);
    int result = put_object(text, part->before);
    if (result > 0)
        result = put_regular(text, part, shown, powers);
    Py_DECREF(shown);
    if (result > 0)
        result = put_object(text, part->after);
    if (result)
        return result;
    text->at = text->start + start;
    return put_irregular(text, part, value);
}

static int put_part(Text *text, const Part *part, Py_ssize_t row, const uint8_t *powers)
{
    if (part->piece != NULL)
        return put_object(text, part->piece);
    if (row >= PyList_GET_SIZE(part->each)) {
        PyErr_SetString(PyExc_ValueError, "a part has fewer rows than the others");
        return -1;
    }
    PyObject *one = PyList_GET_ITEM(part->each, row);
    if (part->write == NULL) {
        if (PyBytes_Check(one))
            return put_object(text, one);
        PyErr_SetString(PyExc_TypeError, "a piece is bytes");
        return -1;
    }
    if (!PyTuple_Check(one) || part->place >= PyTuple_GET_SIZE(one)) {
        PyErr_SetString(PyExc_TypeError, "a row is a tuple with a value at each place");
        return -1;
    }
    PyObject *value = Py_NewRef(PyTuple_GET_ITEM(one, part->place)); /* a writer may change the list */
    int result = put_value(text, part, value, powers);
    Py_DECREF(value);
    return result;
}

/* Read a part, whose objects stay those of `given`; -1 with an exception. */
static int get_part(Part *part, PyObject *given)
{
    *part = (Part){0};
    if (PyBytes_Check(given))
        part->piece = given;
    else if (PyList_Check(given))
        part->each = given;
    else {
        PyObject *writer;
        if (!PyTuple_Check(given)) {
            PyErr_SetString(PyExc_TypeError, "a part is bytes, a list or a tuple");
            return -1;
        }
        if (!PyArg_ParseTuple(given, "O!nO!", &PyList_Type, &part->each, &part->place, &PyTuple_Type, &writer) ||
            !PyArg_ParseTuple(writer, "iippOSSSO", &part->output, &part->scale, &part->is_html,
                              &part->is_number, &part->members, &part->before, &part->after, &part->null, &part->write))
            return -1;
        if (part->place < 0 || part->scale < 0 || part->scale > LONGEST_DECIMAL ||
            ((part->output == DATETIME || part->output == DURATION) &&
             !is_time_form(part->output, sizeof(int64_t), part->scale))) {
            PyErr_SetString(PyExc_ValueError, "a column has no such place or scale");
            return -1;
        }
    }
    return 0;
}

static PyObject *written(Py_ssize_t count, const Part *parts, Py_ssize_t part_count, const uint8_t *powers)
{
    PyObject *made = PyList_New(count);
    Text text = {0};
    for (Py_ssize_t row = 0; made != NULL && row < count; row++) {
        text.at = text.start;
        int result = 1;
        for (Py_ssize_t i = 0; result > 0 && i < part_count; i++)
            result = put_part(&text, &parts[i], row, powers);
        PyObject *one =
            result > 0 ? PyBytes_FromStringAndSize((const char *)text.start, text.at - text.start) : NULL;
        if (one == NULL)
            Py_CLEAR(made);
        else
            PyList_SET_ITEM(made, row, one);
    }
    give_memory(text.start);
    return made;
}

PyObject *row_texts(PyObject *module, PyObject *arguments)
{
    Py_ssize_t count;
    PyObject *given, *made = NULL;
    Py_buffer powers;
    if (!PyArg_ParseTuple(arguments, "nO!y*", &count, &PyTuple_Type, &given, &powers))
        return NULL;
    Py_ssize_t part_count = PyTuple_GET_SIZE(given), i = 0;
    Part *parts = PyMem_New(Part, part_count);
    if (parts == NULL)
        PyErr_NoMemory();
    else if (count < 0 || powers.len != (MOST_POWER - LEAST_POWER + 1) * POWER_BYTES)
        PyErr_SetString(PyExc_ValueError, "the count or the powers of ten aren't whole");
    else {
        while (i < part_count && get_part(&parts[i], PyTuple_GET_ITEM(given, i)) == 0)
            i++;
        if (i == part_count)
            made = written(count, parts, part_count, powers.buf);
    }
    PyMem_Free(parts);
    PyBuffer_Release(&powers);
    return made;
}

int load_row_texts(void)
{
    PyDateTime_IMPORT;
    PyObject *decimal = PyImport_ImportModule("decimal");
    if (PyDateTimeAPI == NULL || decimal == NULL)
        return -1;
    Py_XSETREF(decimal_type, PyObject_GetAttrString(decimal, "Decimal"));
    Py_DECREF(decimal);
    return decimal_type == NULL ? -1 : 0;
}
