/* A libnvidia-ml.so.1 that plays what the file in FAKE_NVML says, so that the real pynvml can be tested without a GPU.

   The file has one `key value` per line and is read anew at every call: a test changes the device by writing it.
   Keys are `driver`, `devices`, and `<device>.<quantity>` with `*` for all devices. A value `!15` is that return code;
   a quantity that is not in the file is not supported (3). `<device>.lost 1` makes every call on it return 15,
   `<device>.lost_after 4` does so from a process's fifth look at its clock on. `init !9` makes the library itself answer
   with that code. Device 100 + 10 i + k is MIG slice k of device i.
   Compiled with -DOLD it lacks what drivers before 535 lacked. */

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, SMALL = 7, TIMEOUT = 10, LOST = 15 };
typedef unsigned int u32;
typedef unsigned long long u64;
typedef intptr_t device_t; /* number of the device plus one, so that it is never NULL */

static int find(const char* key, char* value, size_t room) {
    const char* path = getenv("FAKE_NVML");
    FILE* file = path ? fopen(path, "r") : NULL;
    char line[512], name[128];
    int found = 0;
    if (!file) return 0;
    while (!found && fgets(line, sizeof line, file)) {
        int start = 0;
        if (sscanf(line, "%127s %n", name, &start) != 1 || strcmp(name, key)) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(value, room, "%s", line + start);
        found = 1;
    }
    fclose(file);
    return found;
}

static int get(device_t device, const char* quantity, char* value, size_t room) {
    static int looks; /* of this process at a clock: once a reading */
    char key[160];
    looks += !strcmp(quantity, "sm_clock");
    snprintf(key, sizeof key, "%d.lost_after", (int)device - 1);
    if (find(key, value, room) && looks > atoi(value)) return LOST;
    snprintf(key, sizeof key, "%d.lost", (int)device - 1);
    if (find(key, value, room) && atoi(value)) return LOST;
    if (find("init", value, room) && *value == '!') return atoi(value + 1);
    snprintf(key, sizeof key, "%d.%s", (int)device - 1, quantity);
    if (!find(key, value, room)) {
        snprintf(key, sizeof key, "*.%s", quantity);
        if (device > 100 || !find(key, value, room)) return NOT_SUPPORTED;
    }
    return *value == '!' ? atoi(value + 1) : SUCCESS;
}

static int number(device_t device, const char* quantity, double* out) {
    char value[256];
    int code = get(device, quantity, value, sizeof value);
    if (code == SUCCESS) *out = atof(value);
    return code;
}

static int whole(device_t device, const char* quantity, u32* out) {
    double value;
    int code = number(device, quantity, &value);
    if (code == SUCCESS) *out = (u32)value;
    return code;
}

static int words(device_t device, const char* quantity, char* out, u32 room) {
    char value[256];
    int code = get(device, quantity, value, sizeof value);
    if (code == SUCCESS) snprintf(out, room, "%s", value);
    return code;
}

static int library(void) {
    char value[64];
    return find("init", value, sizeof value) && *value == '!' ? atoi(value + 1) : SUCCESS;
}

int nvmlInitWithFlags(u32 flags) { (void)flags; return library(); }
int nvmlShutdown(void) { return library(); }
const char* nvmlErrorString(int code) { (void)code; return "a code that pynvml does not know"; }

int nvmlSystemGetDriverVersion(char* out, u32 room) {
    char value[64] = "580.159.03";
    find("driver", value, sizeof value);
    snprintf(out, room, "%s", value);
    return library();
}

int nvmlSystemGetCudaDriverVersion_v2(int* out) { *out = 13000; return library(); }

int nvmlDeviceGetCount_v2(u32* out) {
    char value[64] = "0";
    find("devices", value, sizeof value);
    *out = (u32)atoi(value);
    return library();
}

int nvmlDeviceGetHandleByIndex_v2(u32 index, device_t* out) {
    char value[256];
    int code = get(index + 1, "uuid", value, sizeof value);
    *out = index + 1;
    return code;
}

int nvmlDeviceGetUUID(device_t d, char* out, u32 room) { return words(d, "uuid", out, room); }
int nvmlDeviceGetName(device_t d, char* out, u32 room) { return words(d, "name", out, room); }
int nvmlDeviceGetVbiosVersion(device_t d, char* out, u32 room) { return words(d, "vbios", out, room); }
int nvmlDeviceGetEnforcedPowerLimit(device_t d, u32* out) { return whole(d, "power_limit", out); }
int nvmlDeviceGetApplicationsClock(device_t d, u32 kind, u32* out) {
    return whole(d, kind == 1 ? "application_sm_clock" : "application_memory_clock", out);
}
int nvmlDeviceGetMaxCustomerBoostClock(device_t d, u32 kind, u32* out) { (void)kind; return whole(d, "boost_sm_clock", out); }
int nvmlDeviceGetMigMode(device_t d, u32* now, u32* next) { *next = 0; return whole(d, "mig", now); }
int nvmlDeviceGetPowerUsage(device_t d, u32* out) { return whole(d, "power_usage", out); }
int nvmlDeviceGetMaxMigDeviceCount(device_t d, u32* out) { (void)d; *out = 7; return SUCCESS; }
int nvmlDeviceGetPersistenceMode(device_t d, u32* out) { return whole(d, "persistence", out); }
int nvmlDeviceGetTemperature(device_t d, u32 sensor, u32* out) { (void)sensor; return whole(d, "temperature", out); }
int nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, u64* out) {
    double value;
    int code = number(d, "reasons", &value);
    if (code == SUCCESS) *out = (u64)value;
    return code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device_t d, u32 index, device_t* out) {
    char value[256];
    *out = 100 + 10 * (d - 1) + index + 1;
    return get(*out, "uuid", value, sizeof value) == SUCCESS ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetClockInfo(device_t d, u32 kind, u32* out) { return whole(d, kind == 1 ? "sm_clock" : "memory_clock", out); }
int nvmlDeviceGetMaxClockInfo(device_t d, u32 kind, u32* out) { (void)kind; return whole(d, "max_sm_clock", out); }

int nvmlDeviceGetUtilizationRates(device_t d, u32 out[2]) {
    int code = whole(d, "utilization", &out[0]);
    return code ? code : whole(d, "memory_utilization", &out[1]);
}

/* The first form counts what the driver keeps for itself as used, as real ones do. */
static int memory(device_t d, u64* total, u64* reserved, u64* used) {
    double values[3];
    int code = number(d, "memory_total", &values[0]);
    code = code ? code : number(d, "memory_used", &values[1]);
    if (code) return code;
    if (number(d, "memory_reserved", &values[2])) values[2] = 0;
    *total = (u64)values[0], *used = (u64)values[1], *reserved = (u64)values[2];
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(device_t d, u64 out[3]) {
    u64 reserved;
    int code = memory(d, &out[0], &reserved, &out[2]);
    if (code) return code;
    out[2] += reserved;
    out[1] = out[0] - out[2];
    return SUCCESS;
}

#ifndef OLD
struct memory_v2 { u32 version; u64 total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(device_t d, struct memory_v2* out) {
    int code = memory(d, &out->total, &out->reserved, &out->used);
    if (code) return code;
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}
#endif

int nvmlDeviceGetTotalEnergyConsumption(device_t d, u64* out) {
    double value;
    int code = number(d, "energy", &value);
    if (code == SUCCESS) *out = (u64)value;
    return code;
}

int nvmlDeviceGetTotalEccErrors(device_t d, u32 kind, u32 counter, u64* out) {
    double value;
    int code = number(d, kind ? "ecc_uncorrected" : "ecc_corrected", &value);
    (void)counter;
    if (code == SUCCESS) *out = (u64)value;
    return code;
}

int nvmlDeviceGetRemappedRows(device_t d, u32* corrected, u32* uncorrected, u32* pending, u32* failed) {
    *corrected = 0, *pending = 0, *failed = 0;
    return whole(d, "rows_remapped", uncorrected);
}

int nvmlDeviceGetPcieThroughput(device_t d, u32 way, u32* out) { return whole(d, way ? "pcie_received" : "pcie_sent", out); }

/* Fields: one call, a return code for each. */
typedef struct { u32 id, scope; int64_t at, latency; u32 type; int code; union { double d; u64 u; } value; } field_t;

int nvmlDeviceGetFieldValues(device_t d, int count, field_t* fields) {
    static const struct { u32 id; const char* name; } known[] = {
        {186, "power"}, {185, "power_average"}, {83, "energy"}, {82, "memory_temperature"}, {74, "power_throttled"},
        {75, "thermal_throttled"}, {77, "board_throttled"}, {94, "pcie_replays"}, {190, "power_limit"}};
    for (int i = 0; i < count; i++) {
        fields[i].code = NOT_SUPPORTED;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (known[k].id == fields[i].id) {
                double value = 0;
                fields[i].code = number(d, fields[i].scope == 1 ? "power_module" : known[k].name, &value);
                fields[i].type = 3, fields[i].value.u = (u64)value;
                if (fields[i].code == LOST || fields[i].code == UNINITIALIZED) return fields[i].code;
            }
    }
    return SUCCESS;
}

/* Processes: `<device>.processes 41:1000 77:2000` is pid:bytes, `<device>.busy 77` who works. */
typedef struct { u32 pid; u64 memory; u32 gi, ci; } process_t;
typedef struct { u32 pid; u64 at; u32 sm, memory, enc, dec; } work_t;

int nvmlDeviceGetComputeRunningProcesses_v3(device_t d, u32* count, process_t* out) {
    char value[256];
    u32 room = *count, n = 0;
    int code = get(d, "processes", value, sizeof value);
    if (code) return code;
    for (char *rest, *word = strtok_r(value, " ", &rest); word; word = strtok_r(NULL, " ", &rest), n++)
        if (n < room && out) sscanf(word, "%u:%llu", &out[n].pid, &out[n].memory), out[n].gi = out[n].ci = 0;
    *count = n;
    return n > room ? SMALL : SUCCESS;
}

int nvmlDeviceGetProcessUtilization(device_t d, work_t* out, u32* count, u64 since) {
    char value[256];
    u32 n = 0;
    int code = get(d, "busy", value, sizeof value);
    (void)since;
    if (code) return code;
    for (char *rest, *word = strtok_r(value, " ", &rest); word; word = strtok_r(NULL, " ", &rest), n++)
        if (out) memset(&out[n], 0, sizeof *out), out[n].pid = (u32)atoi(word), out[n].sm = 50;
    if (!n) return NOT_FOUND;
    *count = n;
    return out ? SUCCESS : SMALL;
}

int nvmlSystemGetProcessName(u32 pid, char* out, u32 room) {
    char key[64], value[256] = "/usr/bin/stranger --all";
    snprintf(key, sizeof key, "process.%u", pid);
    find(key, value, sizeof value);
    snprintf(out, room, "%s", value);
    return SUCCESS;
}

/* Xids: `<device>.xid 79` is told once for each new value. */
typedef struct { device_t device; u64 type, data; u32 gi, ci; } event_t;
static int registered[16], told[16];

int nvmlEventSetCreate(void** out) { *out = told; return library(); }
int nvmlEventSetFree(void* set) { (void)set; return SUCCESS; }
int nvmlDeviceRegisterEvents(device_t d, u64 types, void* set) {
    (void)set;
    registered[(d - 1) % 16] = types == 8;
    told[(d - 1) % 16] = 0;
    return SUCCESS;
}

int nvmlEventSetWait_v2(void* set, event_t* out, u32 timeout_ms) {
    struct timespec pause = {0, 5000000};
    (void)set, (void)timeout_ms;
    for (int i = 0; i < 16; i++) {
        u32 xid = 0;
        if (!registered[i] || whole(i + 1, "xid", &xid) || !xid || told[i] == (int)xid) continue;
        told[i] = (int)xid;
        *out = (event_t){i + 1, 8, xid, 0, 0};
        return SUCCESS;
    }
    nanosleep(&pause, NULL);
    return TIMEOUT;
}

#ifndef OLD
int nvmlDeviceGetCurrentClocksEventReasons(device_t d, u64* out) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(d, out);
}

/* GPM: two samples and the means between them, in percent. */
typedef struct { u32 id; int code; double value; const char* info[3]; } gpm_metric_t;
typedef struct { u32 version, count; void *first, *second; gpm_metric_t metrics[]; } gpm_t;
static device_t sampled;

int nvmlGpmQueryDeviceSupport(device_t d, u32 support[2]) {
    double value;
    support[1] = number(d, "sm_active", &value) == SUCCESS;
    return SUCCESS;
}
int nvmlGpmSampleAlloc(void** out) { *out = &sampled; return SUCCESS; }
int nvmlGpmSampleGet(device_t d, void* sample) { (void)sample; sampled = d; return SUCCESS; }
int nvmlGpmMetricsGet(gpm_t* asked) {
    for (u32 i = 0; i < asked->count; i++) {
        gpm_metric_t* one = &asked->metrics[i];
        const char* name = one->id == 2 ? "sm_active" : one->id == 3 ? "sm_occupancy" : one->id == 5 ? "tensor_active"
                         : one->id == 10 ? "dram_active" : "none";
        one->code = number(sampled, name, &one->value);
    }
    return SUCCESS;
}
#endif
