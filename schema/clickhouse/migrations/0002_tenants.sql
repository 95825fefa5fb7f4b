-- Tables of tenants: rows that accounts see, and users whose rows are erased.

-- Rows that an account sees beside these: of a cluster (kind 'cluster'), or of a Slurm account or a namespace of a cluster (kind 'account',
-- 'namespace'; name).
CREATE TABLE IF NOT EXISTS $db.reader_scope (reader String, cluster String, kind String, name String) ENGINE = ReplacingMergeTree
  ORDER BY (reader, cluster, kind, name);

-- Users whose rows before a time are erased (occtrace-ship --erase): shippers do not send them again.
CREATE TABLE IF NOT EXISTS $db.erased (cluster String, user String, before DateTime('UTC'), version UInt64) ENGINE = ReplacingMergeTree(version)
  ORDER BY (cluster, user){ TTL before + INTERVAL $hours DAY|};
