-- Two GPUs of one model in one process, without UUIDs: 3 launches on CUDA device 0, 5 on device 1. Both kernels run on both
-- devices. two-equal-gpus.json has the same launches.
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, '_Z5scalePf'), (2, '_Z5shiftPf');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, smCount INTEGER,
    cuDevice INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, maxThreadsPerBlock INTEGER,
    maxRegistersPerBlock INTEGER, maxRegistersPerSm INTEGER, maxShmemPerBlock INTEGER, maxShmemPerBlockOptin INTEGER,
    maxShmemPerSm INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES
    (281474976710656, 4, 'NVIDIA A100', 42505273344, 108, 0, 32, 64, 32, 1024, 65536, 65536, 49152, 166912, 167936, 8, 0),
    (281474976710656, 5, 'NVIDIA A100', 42505273344, 108, 1, 32, 64, 32, 1024, 65536, 65536, 49152, 166912, 167936, 8, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL, mangledName INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
    gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
    staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    ( 10000,  20000, 0, 1, 7, 1, 281475043819520, 1, 1, 1, 32,  432, 1, 1, 256, 1, 1, 0, 0, 0),
    ( 10000,  22000, 1, 2, 7, 2, 281475043819520, 1, 1, 1, 32,  432, 1, 1, 256, 1, 1, 0, 0, 0),
    ( 30000,  40000, 0, 1, 7, 3, 281475043819520, 1, 1, 1, 32,  432, 1, 1, 256, 1, 1, 0, 0, 0),
    ( 30000,  42000, 1, 2, 7, 4, 281475043819520, 1, 1, 1, 32,  432, 1, 1, 256, 1, 1, 0, 0, 0),
    ( 50000,  80000, 0, 1, 7, 5, 281475043819520, 2, 2, 2, 64,  54, 1, 1, 128, 1, 1, 0, 0, 0),
    ( 50000,  90000, 1, 2, 7, 6, 281475043819520, 2, 2, 2, 64,  54, 1, 1, 128, 1, 1, 0, 0, 0),
    (100000, 140000, 1, 2, 7, 7, 281475043819520, 2, 2, 2, 64,  54, 1, 1, 128, 1, 1, 0, 0, 0),
    (150000, 190000, 1, 2, 7, 8, 281475043819520, 2, 2, 2, 64,  54, 1, 1, 128, 1, 1, 0, 0, 0);
