-- As Nsight Systems 2025.6 exports it: green contexts, MPI ranks; a slice (MIG) of a GPU with 16 of its SMs, and a GPU that
-- TARGET_INFO_CUDA_DEVICE knows by its uuid only. Graphs recorded whole.
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'scale'), (2, 'void ns::scale<float>(float *, int)'), (3, '_ZN2ns5scaleIfEEvPT_i'), (4, 'gemm'),
    (5, 'gemm(float *)'), (6, '_Z4gemmPf');
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.6.3.343');
CREATE TABLE MPI_RANKS (globalTid INTEGER NOT NULL, rank INTEGER NOT NULL);
INSERT INTO MPI_RANKS VALUES (281474976710656 + (4000 << 24) + 4001, 3);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER,
    l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER,
    uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, ctxswDevPath TEXT, ctrlDevPath TEXT, revision INTEGER,
    nodeMask INTEGER, constantMemory INTEGER, maxIPC INTEGER, maxRegistersPerBlock INTEGER, maxShmemPerBlock INTEGER,
    maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, threadsPerWarp INTEGER,
    asyncEngines INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, maxThreadsPerBlock INTEGER, maxBlockDimX INTEGER,
    maxBlockDimY INTEGER, maxBlockDimZ INTEGER, maxGridDimX INTEGER, maxGridDimY INTEGER, maxGridDimZ INTEGER,
    computeMajor INTEGER, computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER, numaNodeId INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (281474976710656, 0, 'NVIDIA H100 80GB HBM3', '0000:1b:00.0', 1, 52428800, 85000000000, 3352320000000,
    1980000000, 132, 0, 'aaaaaaaa-0000-0000-0000-000000000000', 0, 'GH100', NULL, '', '', 161, 0, 65536, 4, 65536, 49152, 232448, 233472, 65536, 32, 3, 64, 32,
    1024, 1024, 1024, 64, 2147483647, 65535, 65535, 9, 0, 9, 0, 0),
    (281474976710656, 1, 'NVIDIA H100 80GB HBM3', '0000:2b:00.0', 1, 52428800, 85000000000, 3352320000000,
    1980000000, 132, 1, 'bbbbbbbb-0000-0000-0000-000000000000', 0, 'GH100', NULL, '', '', 161, 0, 65536, 4, 65536, 49152, 232448, 233472, 65536, 32, 3, 64, 32,
    1024, 1024, 1024, 64, 2147483647, 65535, 65535, 9, 0, 9, 0, 0);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT,
    numMultiprocessors INTEGER);
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 4000, 'MIG-cccccccc-0000-0000-0000-000000000000', 16),
    (NULL, 1, 4000, 'GPU-bbbbbbbb-0000-0000-0000-000000000000', 132);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (5000, 6000, 0, 1, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER,
    qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER,
    clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER,
    maxActiveClusters INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (1000, 1500, 0, 1, NULL, 7, 1, 281474976710656 + (4000 << 24), 2, 1, 3, 1, 0, 32, 264, 1, 1, 256, 1, 1, 0, 0, 0, 0, 1, 8192,
        NULL, 0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0),
    (1100, 1600, 1, 1, 9, 7, 1, 281474976710656 + (4000 << 24), 2, 1, 3, 3, 0, 32, 264, 1, 1, 256, 1, 1, 0, 0, 0, 0, 2, 8192, NULL,
        0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0);
