/* A column of dates, datetimes or durations as text, written from its buffers. */
#include "time_texts.h"
#include "memory.h"
#include "builder.h"
#include "time_text.h"

typedef struct {
    int output, width, scale;
    Py_ssize_t rows;
    Py_buffer validity, values;
} Times;

static int is_valid(const Times *times, Py_ssize_t row)
{
    return times->validity.buf == NULL || ((const uint8_t *)times->validity.buf)[row / 8] >> (row % 8) & 1;
}

static int64_t number_at(const Times *times, Py_ssize_t row)
{
    const uint8_t *at = (const uint8_t *)times->values.buf + row * times->width;
    int32_t days;
    int64_t number;
    if (times->width == sizeof days)
        return memcpy(&days, at, sizeof days), days;
    return memcpy(&number, at, sizeof number), number;
}

/* Write all texts and where each ends; return the last end, or NULL for a date that the calendar doesn't
 * have. */
static uint8_t *write_texts(const Times *times, uint8_t *texts, int64_t *ends)
{
    uint8_t *into = texts;
    *ends++ = 0;
    for (Py_ssize_t row = 0; row < times->rows; row++) {
        if (is_valid(times, row))
            into = put_time(into, times->output, number_at(times, row), times->scale);
        if (into == NULL)
            return NULL;
        ends[row] = into - texts;
    }
    return into;
}

static PyObject *written(const Times *times)
{
    size_t ends_bytes = ((size_t)times->rows + 1) * sizeof(int64_t);
    void *ends, *texts;
    uint8_t *end = NULL;
    PyObject *made = NULL;
    Py_BEGIN_ALLOW_THREADS
    ends = take_memory(ends_bytes);
    texts = take_memory((size_t)times->rows * LONGEST_TIME + 1);
    if (ends != NULL && texts != NULL)
        end = write_texts(times, texts, ends);
    Py_END_ALLOW_THREADS
    if (end != NULL)
        made = Py_BuildValue("(NN)", buffer_of(&ends, ends_bytes),
                             buffer_of(&texts, (size_t)(end - (uint8_t *)texts)));
    else if (ends == NULL || texts == NULL)
        PyErr_NoMemory();
    else
        PyErr_SetString(PyExc_ValueError, "a date isn't in the calendar");
    give_memory(ends);
    give_memory(texts);
    return made;
}

/* True if the buffers have all rows. */
static int is_whole(const Times *times)
{
    return times->rows >= 0 && times->rows <= times->values.len / times->width &&
           (times->validity.buf == NULL || times->rows <= 8 * times->validity.len);
}

PyObject *time_texts(PyObject *module, PyObject *arguments)
{
    Times times = {0};
    PyObject *made = NULL;
    if (!PyArg_ParseTuple(arguments, "iiinz*y*", &times.output, &times.width, &times.scale, &times.rows,
                          &times.validity, &times.values))
        return NULL;
    if (is_time_form(times.output, times.width, times.scale) && is_whole(&times))
        made = written(&times);
    else
        PyErr_SetString(PyExc_ValueError, "the buffers don't have the rows of such a column");
    PyBuffer_Release(&times.validity);
    PyBuffer_Release(&times.values);
    return made;
}
