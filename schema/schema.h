/* The history's SQL, embedded: numbered migrations, each run in one transaction. Migration `version` brings a
 * history of version - 1 to `version`; PRAGMA user_version is the history's version. Migrations are added and
 * never changed. A program of a version also reads histories of version - 1: its queries name only columns of
 * both versions. */
#pragma once

/* PRAGMA application_id of a history: "occh". Histories from before the first release have "occt" and are not
 * read. */
#define OCC_SCHEMA_APPLICATION_ID     0x6f636368
#define OCC_SCHEMA_OLD_APPLICATION_ID 0x6f636374

struct occ_schema_migration {
    int version; /* counts from 1 */
    const char *name;
    const char *sql;
};

/* The last row has version 0. */
extern const struct occ_schema_migration occ_schema_migrations[];

/* The files of clickhouse/migrations/, applied after warehouse.sql; `version` is the number of the file, and 0
 * in the last row. Each statement may be repeated and only adds, since programs of other versions use the
 * same tables. */
extern const struct occ_schema_migration occ_schema_warehouse_migrations[];

/* clickhouse/; $db: the database; other variables: see warehouse.sql. */
extern const char occ_schema_warehouse_sql[], occ_schema_retention_sql[], occ_schema_accounts_sql[],
    occ_schema_accounts_xml[];
