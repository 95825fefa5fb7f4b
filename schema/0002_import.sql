-- Recordings of other tools (occq import). A run made of one says which tool and version made it, from which file, and
-- what that tool never says. time_base: 'epoch', or 'unknown' when its times count from an origin that the recording
-- does not name; NULL is a run that was traced (epoch).
ALTER TABLE run ADD COLUMN source_version TEXT;
ALTER TABLE run ADD COLUMN source_file TEXT;
ALTER TABLE run ADD COLUMN source_hash TEXT;   -- of the file's bytes: XXH3, 128 bits, hexadecimal
ALTER TABLE run ADD COLUMN time_base TEXT;
ALTER TABLE run ADD COLUMN lacks TEXT;
ALTER TABLE run ADD COLUMN rank TEXT;          -- of a distributed job
CREATE INDEX run_source_hash ON run(source_hash) WHERE source_hash IS NOT NULL;

-- What a recording itself claims of the achieved occupancy of a shape's launches, 0...1. Neither measured nor ours.
CREATE TABLE source_claim (
    run      INTEGER NOT NULL,
    shape    INTEGER NOT NULL,
    launches INTEGER NOT NULL,
    mean     REAL NOT NULL,
    min      REAL NOT NULL,
    max      REAL NOT NULL,
    PRIMARY KEY (run, shape)
) WITHOUT ROWID;

DROP VIEW run_detail;
CREATE VIEW run_detail AS
SELECT r.id AS run, lower(hex(r.uuid)) AS uuid, n.hostname, r.pid, r.uid, r.user, r.exe, r.cmdline, r.label,
       r.session, r.slurm_job, r.k8s_pod, r.container, r.source, r.source_version AS sourceVersion,
       r.source_file AS sourceFile, r.rank, coalesce(r.time_base, 'epoch') AS timeBase, r.level, r.level_reason, r.simulated,
       r.start_ns AS start, r.end_ns AS "end", r.launches, r.gpu_ns AS gpuTime,
       (SELECT coalesce(sum(count), 0) FROM loss WHERE loss.run = r.id) AS lost
FROM run r LEFT JOIN node n ON n.id = r.node;
