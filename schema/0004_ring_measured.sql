-- How many MEASURED frames of a ring's log were counted: in the same transaction as their sums, so each counts once.
ALTER TABLE ring_position ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
