-- How many MEASURED frames of a ring's log were counted: in the same transaction as their sums, so each counts once.
CREATE TABLE measured_position (
    uuid BLOB PRIMARY KEY,
    next INTEGER NOT NULL
) WITHOUT ROWID;
