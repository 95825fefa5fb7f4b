-- Ranges as Nsight Systems exports them, with few columns. Two processes with a thread 5 each. Process 7: a domain, a
-- registered text, a range that is open at the end, one that ends on another thread, a push in the other process at the same
-- time; a graph whose node 11 is captured in "capture", instantiated as 12 and launched in "replay".
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, '_Z1kv'), (2, 'registered 3');
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA A100', 0, 108, 8, 0);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'MPI', (7 << 24) + 5, NULL, NULL, 1),
    (10, 100, 59, 'step 17', (7 << 24) + 5, NULL, NULL, 0), (20, 30, 59, NULL, (7 << 24) + 5, NULL, 2, 1),
    (40, 90, 60, 'moves', (7 << 24) + 5, (7 << 24) + 6, NULL, 0), (10, 100, 59, 'another', (8 << 24) + 5, NULL, NULL, 0),
    (200, NULL, 59, 'open', (7 << 24) + 5, NULL, NULL, 0), (50, NULL, 34, 'a mark', (7 << 24) + 5, NULL, NULL, 0),
    (300, 310, 60, 'capture', (7 << 24) + 6, (7 << 24) + 6, NULL, 0), (400, 450, 70, 'replay', (7 << 24) + 6, NULL, NULL, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (22, 24, (7 << 24) + 5, 1), (50, 52, (7 << 24) + 5, 2),
    (22, 24, (8 << 24) + 5, 1), (250, 260, (7 << 24) + 5, 3), (410, 420, (7 << 24) + 6, 4);
CREATE TABLE CUDA_GRAPH_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER);
INSERT INTO CUDA_GRAPH_EVENTS VALUES (305, 305, (7 << 24) + 6, 11, NULL), (401, 405, (7 << 24) + 6, 12, 11),
    (402, 405, (7 << 24) + 6, 13, 99);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1000 * id, 1000 * id + 10, 0, 1, 7, correlation, process, 1, 1, 16, 1, 1, 1, 32, 1, 1, node FROM (SELECT column1 AS id, column2 AS process, column3 AS correlation, column4 AS node FROM (VALUES (1, (7 << 24), 1, NULL), (2, (7 << 24), 2, NULL), (3, (8 << 24), 1, NULL), (4, (7 << 24), 3, NULL), (5, (7 << 24), 4, 12), (6, (7 << 24), 4, 13), (7, (7 << 24), 99, NULL)));
