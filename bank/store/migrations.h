/* migrations: the schema's steps, embedded from bank/sql when the program is built. */
#ifndef NUI_BANK_STORE_MIGRATIONS_H
#define NUI_BANK_STORE_MIGRATIONS_H

struct bank_migration {
    int version; /* 1, 2 … ; 0 ends the table */
    const char *name;
    const char *sql;
};

extern const struct bank_migration bank_migrations[];

#endif
