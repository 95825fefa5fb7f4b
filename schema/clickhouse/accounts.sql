-- Accounts of the warehouse, for ClickHouse from 21.11 on: printed by occtrace-ship --accounts, to be run by an administrator
-- after --init has made the tables. What is in capitals is to be replaced.

-- Makes and maintains the tables: occtrace-ship --init, --maintain.
CREATE ROLE IF NOT EXISTS occ_admin;
GRANT SHOW, SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP TABLE, DROP VIEW, TRUNCATE, OPTIMIZE ON $db.* TO occ_admin;

-- A node: inserts, and reads what has arrived of it. The tables take rows from the account occ_node_NAME only if NAME is their
-- node (CONSTRAINT own_node); an account with another name sends rows of any node, and reads of all nodes how many rows have arrived. The views
-- that count what arrives work with the rights of the sender: of facts a node may read which nodes there are.
CREATE ROLE IF NOT EXISTS occ_node;
GRANT INSERT ON $db.kernel TO occ_node;
GRANT INSERT ON $db.launch_config TO occ_node;
GRANT INSERT ON $db.run TO occ_node;
GRANT INSERT ON $db.minute TO occ_node;
GRANT INSERT ON $db.rank_minute TO occ_node;
GRANT INSERT ON $db.launch TO occ_node;
GRANT INSERT ON $db.allocation TO occ_node;
GRANT INSERT ON $db.watermark TO occ_node;
GRANT SELECT(cluster, node, version) ON $db.kernel TO occ_node;
GRANT SELECT(cluster, node, version) ON $db.launch_config TO occ_node;
GRANT SELECT(cluster, node, history, version) ON $db.run TO occ_node;
GRANT SELECT(cluster, node, version, bucket) ON $db.minute TO occ_node;
GRANT SELECT(cluster, node, version) ON $db.rank_minute TO occ_node;
GRANT SELECT(cluster, node, version) ON $db.launch TO occ_node;
GRANT INSERT ON $db.batch TO occ_node;
GRANT INSERT ON $db.hour_change TO occ_node;
GRANT SELECT ON $db.schema_version TO occ_node;
GRANT SELECT ON $db.migration TO occ_node;
GRANT SELECT ON $db.erased TO occ_node;
GRANT SELECT ON $db.batch TO occ_node;
CREATE ROW POLICY OR REPLACE occ_node ON $db.batch USING NOT startsWith(currentUser(), 'occ_node_') OR node = substring(currentUser(), 10) TO occ_node;

-- A reader: rows of the user that has the account's name, of users that the table reader names beside it (a team), and of clusters, Slurm
-- accounts and namespaces that the table reader_scope gives the account. OR REPLACE: a second call renews the policies.
CREATE ROLE IF NOT EXISTS occ_reader;
GRANT SELECT ON $db.* TO occ_reader;
-- Who sees every user's rows: dashboards of the fleet.
CREATE ROLE IF NOT EXISTS occ_reader_all;
GRANT SELECT ON $db.* TO occ_reader_all;
CREATE ROW POLICY OR REPLACE occ_reader ON $db.reader USING account = currentUser() TO occ_reader;
CREATE ROW POLICY OR REPLACE occ_reader ON $db.reader_scope USING reader = currentUser() TO occ_reader;
-- Empty rows, which take the place of a removed run's rows, have no account and no namespace: a reader who does not see them still counts the
-- rows in whose place they are.
CREATE ROW POLICY OR REPLACE occ_reader ON $db.run USING user = currentUser() OR user IN (SELECT user FROM $db.reader WHERE account = currentUser()) OR cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'cluster') OR (cluster, slurm_account) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'account') OR (cluster, namespace) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'namespace') OR (level = 'removed' AND cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind IN ('account', 'namespace'))) TO occ_reader;
CREATE ROW POLICY OR REPLACE occ_reader ON $db.minute USING user = currentUser() OR user IN (SELECT user FROM $db.reader WHERE account = currentUser()) OR cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'cluster') OR (cluster, slurm_account) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'account') OR (cluster, namespace) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'namespace') OR (launches = 0 AND cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind IN ('account', 'namespace'))) TO occ_reader;
CREATE ROW POLICY OR REPLACE occ_reader ON $db.hour USING user = currentUser() OR user IN (SELECT user FROM $db.reader WHERE account = currentUser()) OR cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'cluster') OR (cluster, slurm_account) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'account') OR (cluster, namespace) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'namespace') OR (launches = 0 AND cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind IN ('account', 'namespace'))) TO occ_reader;
CREATE ROW POLICY OR REPLACE occ_reader ON $db.launch USING user = currentUser() OR user IN (SELECT user FROM $db.reader WHERE account = currentUser()) OR cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'cluster') OR (cluster, slurm_account) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'account') OR (cluster, namespace) IN (SELECT cluster, name FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'namespace') TO occ_reader;
-- by the run, which has the account and the namespace; of the run's node: another node may have sent a run of that UUID
CREATE ROW POLICY OR REPLACE occ_reader ON $db.rank_minute USING user = currentUser() OR user IN (SELECT user FROM $db.reader WHERE account = currentUser()) OR cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'cluster') OR (cluster, node, history, run) IN (SELECT cluster, node, history, run FROM $db.run WHERE level != 'removed') TO occ_reader;
-- of jobs of which it sees a run, of about the same time (units of 16 days): Slurm gives ids again. A run that only claims its job shows none of
-- the job's, and the key of a removed run shows nothing.
CREATE ROW POLICY OR REPLACE occ_reader ON $db.allocation USING cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser() AND kind = 'cluster') OR (cluster, job, intDiv(toInt64(toUInt32(since)), 1382400)) IN (SELECT cluster, job, intDiv(toInt64(toUInt32(start)), 1382400) FROM $db.run WHERE job_trust != 'claimed' AND level != 'removed') OR (cluster, job, intDiv(toInt64(toUInt32(since)), 1382400) - 1) IN (SELECT cluster, job, intDiv(toInt64(toUInt32(start)), 1382400) FROM $db.run WHERE job_trust != 'claimed' AND level != 'removed') OR (cluster, job, intDiv(toInt64(toUInt32(since)), 1382400) + 1) IN (SELECT cluster, job, intDiv(toInt64(toUInt32(start)), 1382400) FROM $db.run WHERE job_trust != 'claimed' AND level != 'removed') TO occ_reader;
-- nodes of clusters of which it sees a run, or may see one
CREATE ROW POLICY OR REPLACE occ_reader ON $db.watermark USING cluster IN (SELECT cluster FROM $db.reader_scope WHERE reader = currentUser()) OR cluster IN (SELECT cluster FROM $db.run) TO occ_reader;
CREATE ROW POLICY OR REPLACE occ_reader ON $db.batch USING 0 TO occ_reader;
-- whose rows are erased is not a reader's business
CREATE ROW POLICY OR REPLACE occ_reader ON $db.erased USING 0 TO occ_reader;
CREATE ROW POLICY OR REPLACE occ_reader_all ON $db.erased USING 0 TO occ_reader_all;
CREATE ROW POLICY OR REPLACE occ_others ON $db.erased USING 1 TO ALL EXCEPT occ_reader, occ_reader_all;
CREATE ROW POLICY OR REPLACE occ_others ON $db.batch USING 1 TO ALL EXCEPT occ_node, occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.watermark USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.reader USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.reader_scope USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.run USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.minute USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.hour USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.rank_minute USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.launch USING 1 TO ALL EXCEPT occ_reader;
CREATE ROW POLICY OR REPLACE occ_others ON $db.allocation USING 1 TO ALL EXCEPT occ_reader;

CREATE USER IF NOT EXISTS occ_admin IDENTIFIED WITH sha256_password BY 'PASSWORD' DEFAULT ROLE occ_admin;
GRANT occ_admin TO occ_admin;
CREATE USER IF NOT EXISTS `occ_node_NODE` IDENTIFIED WITH sha256_password BY 'PASSWORD' DEFAULT ROLE occ_node;
GRANT occ_node TO `occ_node_NODE`;
-- One account for all nodes, which may send rows of any node (the Helm chart's):
-- CREATE USER IF NOT EXISTS occ_nodes IDENTIFIED WITH sha256_password BY 'PASSWORD' DEFAULT ROLE occ_node;
-- GRANT occ_node TO occ_nodes;
CREATE USER IF NOT EXISTS `USER` IDENTIFIED WITH sha256_password BY 'PASSWORD' SETTINGS readonly = 2 DEFAULT ROLE occ_reader;
GRANT occ_reader TO `USER`;
-- INSERT INTO $db.reader (account, user) VALUES ('USER', 'COLLEAGUE');
-- INSERT INTO $db.reader_scope (reader, cluster, kind, name) VALUES ('USER', 'CLUSTER', 'cluster', ''), ('USER', 'CLUSTER', 'account', 'ACCOUNT'), ('USER', 'CLUSTER', 'namespace', 'NAMESPACE');
