/* Python objects of values. */
#include "value.h"

#include <datetime.h>
#include <string.h>

static PyObject *integer_of(int128 number)
{
    if (number == (int64_t)number)
        return PyLong_FromLongLong((int64_t)number);
    /* Up to 38 digits: two numbers below 10^19. */
    const uint64_t split = 10000000000000000000ull;
    int is_negative = number < 0;
    unsigned __int128 magnitude = is_negative ? -(unsigned __int128)number : (unsigned __int128)number;
    char digits[48];
    snprintf(digits, sizeof digits, "%s%llu%019llu", is_negative ? "-" : "",
             (unsigned long long)(magnitude / split), (unsigned long long)(magnitude % split));
    return PyLong_FromString(digits, NULL, 10);
}

/* Decimals made lately, for amounts that come again: making one takes as long as all else of a row of eight
   columns. Up to 8 MB. */
#define KEPT_BITS 16
static struct {
    int64_t number;
    int scale;
    PyObject *decimal;
} kept[1 << KEPT_BITS];

static PyObject *new_decimal(const Column *column, int128 decimal)
{
    PyObject *number = integer_of(decimal);
    if (number == NULL)
        return NULL;
    PyObject *arguments[] = {number, column->unit};
    PyObject *made = PyObject_Vectorcall(column->members, arguments, column->unit == NULL ? 1 : 2, NULL);
    Py_DECREF(number);
    return made;
}

static PyObject *decimal_of(const Column *column, int128 decimal)
{
    int64_t number = (int64_t)decimal;
    int scale = column->scale;
    if (number != decimal)
        return new_decimal(column, decimal);
    uint64_t mixed = ((uint64_t)number + (uint64_t)scale) * 0x9E3779B97F4A7C15ull;
    size_t slot = (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15ull >> (64 - KEPT_BITS);
    if (kept[slot].decimal != NULL && kept[slot].number == number && kept[slot].scale == scale)
        return Py_NewRef(kept[slot].decimal);
    PyObject *made = new_decimal(column, decimal);
    if (made != NULL) {
        PyObject *last = kept[slot].decimal;
        kept[slot].number = number;
        kept[slot].scale = scale;
        kept[slot].decimal = Py_NewRef(made);
        Py_XDECREF(last);
    }
    return made;
}

static PyObject *timestamp_of(int64_t micros)
{
    int64_t seconds = micros / 1000000, days = seconds / 86400 + 719468; /* since 0000-03-01 */
    int clock = (int)(seconds % 86400);
    int64_t era = days / 146097, day_of_era = days % 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int from_march = (int)((5 * day_of_year + 2) / 153);
    int day = (int)(day_of_year - (153 * from_march + 2) / 5 + 1);
    int month = from_march < 10 ? from_march + 3 : from_march - 9;
    int year = (int)(year_of_era + era * 400 + (month <= 2));
    int hour = clock / 3600, minute = clock / 60 % 60, second = clock % 60;
    return PyDateTimeAPI->DateTime_FromDateAndTime(year, month, day, hour, minute, second,
                                                   (int)(micros % 1000000), PyDateTime_TimeZone_UTC,
                                                   PyDateTimeAPI->DateTimeType);
}

static PyObject *ascii_of(const uint8_t *bytes, Py_ssize_t size)
{
    PyObject *text = PyUnicode_New(size, 127);
    if (text != NULL && size)
        memcpy(PyUnicode_1BYTE_DATA(text), bytes, (size_t)size);
    return text;
}

static int is_ascii(const uint8_t *bytes, Py_ssize_t size)
{
    uint8_t any = 0;
    for (Py_ssize_t i = 0; i < size; i++)
        any |= bytes[i];
    return any < 128;
}

static PyObject *padded_bytes(const Column *column, const Value *value)
{
    if (value->size >= column->padding)
        return PyBytes_FromStringAndSize((const char *)value->stored, value->size);
    PyObject *made = PyBytes_FromStringAndSize(NULL, column->padding);
    if (made != NULL) {
        char *into = PyBytes_AS_STRING(made);
        memcpy(into, value->stored, (size_t)value->size);
        memset(into + value->size, 0, (size_t)(column->padding - value->size));
    }
    return made;
}

static PyObject *read_by_reader(const Column *column, const Value *value)
{
    PyObject *stored = PyBytes_FromStringAndSize((const char *)value->stored, value->size);
    if (stored == NULL)
        return NULL;
    PyObject *made = PyObject_CallOneArg(column->reader, stored);
    Py_DECREF(stored);
    return made;
}

PyObject *object_of(const Column *column, const Value *value, Outcome outcome)
{
    if (outcome == IRREGULAR)
        return read_by_reader(column, value);
    switch (column->output) {
    case INT:
        return PyLong_FromLongLong(value->number);
    case UINT:
        return PyLong_FromUnsignedLongLong((uint64_t)value->number);
    case DOUBLE:
        return PyFloat_FromDouble(value->real);
    case DECIMAL:
        return decimal_of(column, value->decimal);
    case DATE:
        return PyDate_FromDate(value->year, value->month, value->day);
    case DATETIME:
        return PyDateTime_FromDateAndTime(value->year, value->month, value->day, value->hour, value->minute,
                                          value->second, value->micros);
    case TIMESTAMP:
        return timestamp_of(value->number);
    case DURATION:
        return PyDelta_FromDSU(0, (int)(value->number / 1000000), (int)(value->number % 1000000));
    case MEMBER:
        if ((uint64_t)value->number >= (uint64_t)PyTuple_GET_SIZE(column->members)) {
            PyErr_SetString(PyExc_ValueError, "an enum has no such member");
            return NULL;
        }
        return Py_NewRef(PyTuple_GET_ITEM(column->members, value->number));
    case MEMBERS: {
        PyObject *bits = PyLong_FromUnsignedLongLong((uint64_t)value->number);
        if (bits == NULL)
            return NULL;
        PyObject *made = PyObject_CallOneArg(column->members, bits);
        Py_DECREF(bits);
        return made;
    }
    case TEXT:
        return PyUnicode_DecodeUTF8((const char *)value->stored, value->size, NULL);
    case ASCII:
        if (is_ascii(value->stored, value->size))
            return ascii_of(value->stored, value->size);
        return read_by_reader(column, value);
    case BYTES:
        return padded_bytes(column, value);
    default:
        return read_by_reader(column, value);
    }
}

void *unreadable(Py_ssize_t column, Py_ssize_t offset)
{
    PyErr_Format(PyExc_ValueError, "column %zd can't be read at byte %zd", column, offset);
    return NULL;
}

int load_datetime(void)
{
    PyDateTime_IMPORT;
    return PyDateTimeAPI == NULL ? -1 : 0;
}
