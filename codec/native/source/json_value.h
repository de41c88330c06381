/* Values of Arrow columns as JSON, without the quotes around them. */
#ifndef TIDEMILL_JSON_VALUE_H
#define TIDEMILL_JSON_VALUE_H

#include "column.h"

/* What an array holds. */
typedef struct {
    int output;
    int width; /* bytes of an element; 0 of text and bytes */
    int scale; /* digits after the point: of a decimal, or the fraction of a second */
} JsonForm;

enum { LONGEST_FIXED = 48 }; /* bytes that put_fixed writes at most */

/* True if its values can be written here. */
int is_json_form(const JsonForm *form);

/* Write a value of fixed width and return its end; NULL for a date that the calendar doesn't have. `powers`
 * is that of put_double. */
uint8_t *put_fixed(uint8_t *into, const JsonForm *form, const uint8_t *at, const uint8_t *powers);

/* How characters are escaped: with all short names of control characters; without \b and \f; and besides <, > and
 * &, and Unicode's line ends, so that HTML may contain the text. */
typedef enum { SHORT_ESCAPES, LONG_ESCAPES, HTML_ESCAPES } Escapes;

/* Write text with its escapes, in at most six times its bytes. */
uint8_t *put_text(uint8_t *into, const uint8_t *at, size_t size, Escapes escapes);

/* Write bytes as base64, in at most twice their bytes and three more. */
uint8_t *put_base64(uint8_t *into, const uint8_t *at, size_t size);

#endif
