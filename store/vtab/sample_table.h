/*
 * The virtual table `device_sample`: the packed samples of devices as rows of plain SQL, as launch_table.h says of
 * launches. (Seconds of devices are the plain table device_second, and the view device_second_detail.)
 */
#ifndef OCC_STORE_SAMPLE_TABLE_H
#define OCC_STORE_SAMPLE_TABLE_H

#ifdef OCC_SQLITE_EXTENSION
#include <sqlite3ext.h>
#else
#include <sqlite3.h>
#endif

/* SQLite code. */
int occ_sample_table_register(struct sqlite3 *db);

#endif
