-- The columns of Slurm and Kubernetes, for tables from before them. One column a statement: 18.16 refuses all columns of a statement if
-- the table has one of them.
ALTER TABLE $db.run ADD COLUMN{ IF NOT EXISTS|} slurm_account LowCardinality(String);
ALTER TABLE $db.run ADD COLUMN{ IF NOT EXISTS|} slurm_partition LowCardinality(String);
ALTER TABLE $db.run ADD COLUMN{ IF NOT EXISTS|} slurm_qos LowCardinality(String);
ALTER TABLE $db.run ADD COLUMN{ IF NOT EXISTS|} slurm_array_job String;
ALTER TABLE $db.run ADD COLUMN{ IF NOT EXISTS|} slurm_array_task String;
ALTER TABLE $db.launch ADD COLUMN{ IF NOT EXISTS|} slurm_account LowCardinality(String);
ALTER TABLE $db.launch ADD COLUMN{ IF NOT EXISTS|} slurm_partition LowCardinality(String);
ALTER TABLE $db.launch ADD COLUMN{ IF NOT EXISTS|} namespace LowCardinality(String);
ALTER TABLE $db.hour ADD COLUMN{ IF NOT EXISTS|} slurm_account LowCardinality(String);
ALTER TABLE $db.hour ADD COLUMN{ IF NOT EXISTS|} slurm_partition LowCardinality(String);
ALTER TABLE $db.hour ADD COLUMN{ IF NOT EXISTS|} namespace LowCardinality(String);
ALTER TABLE $db.minute ADD COLUMN{ IF NOT EXISTS|} slurm_account LowCardinality(String);
ALTER TABLE $db.minute ADD COLUMN{ IF NOT EXISTS|} slurm_partition LowCardinality(String);
ALTER TABLE $db.minute ADD COLUMN{ IF NOT EXISTS|} namespace LowCardinality(String);
