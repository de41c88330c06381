/* The module's function of whole transactions of one rows event. */
#ifndef TIDEMILL_EVENT_TRANSACTIONS_H
#define TIDEMILL_EVENT_TRANSACTIONS_H

#include "column.h"

/* (block, first, blocks of events by layout, items, operations by type of event, source, type of runs, of rows, of
 * transactions): append to `items` the transactions of the changes from `first` on, as long as each is one rows
 * event that ends its transaction, of a layout with a block; return the index of the first other change. */
PyObject *event_transactions(PyObject *module, PyObject *arguments);

#endif
