/* The history's SQL, embedded: numbered migrations, each run in one transaction. Migration `version` brings a
 * file of version - 1 to `version`; PRAGMA user_version is the file's. Files are only ever added here.
 * Programs of a version read files of version - 1 too: their queries ask only for what those have. */
#pragma once

/* PRAGMA application_id of a history: "occh"; and of those from before the first release, which are not read:
 * "occt". */
#define OCC_SCHEMA_APPLICATION_ID     0x6f636368
#define OCC_SCHEMA_OLD_APPLICATION_ID 0x6f636374

struct occ_schema_migration {
    int version; /* counts from 1 */
    const char *name;
    const char *sql;
};

/* Ends with a row whose version is 0. */
extern const struct occ_schema_migration occ_schema_migrations[];

/* clickhouse/migrations/, applied after warehouse.sql; `version`: the number. Ends like the first list. Each
 * statement may be repeated and only adds, since programs of other versions use the same tables. */
extern const struct occ_schema_migration occ_schema_warehouse_migrations[];

/* clickhouse/; $db: the database; other variables: see warehouse.sql. */
extern const char occ_schema_warehouse_sql[], occ_schema_retention_sql[], occ_schema_accounts_sql[],
    occ_schema_accounts_xml[];
