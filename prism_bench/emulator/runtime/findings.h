// What went wrong in a launch, kept until the caller has read it.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "state.h"

namespace cuda_cpu {

extern std::vector<Finding> findings;
constexpr size_t most_findings = 64;

inline Access access_of(const Thread* thread, Site site) {
    Access access{};
    if (thread) {
        const uint3 b = thread->block->index, t = thread->index;
        const uint32_t block[3] = {b.x, b.y, b.z}, index[3] = {t.x, t.y, t.z};
        memcpy(access.block, block, sizeof block);
        memcpy(access.thread, index, sizeof index);
    }
    access.line = site.line;
    if (site.file) snprintf(access.file, sizeof access.file, "%s", site.file);
    else if (thread) access.code = thread->spun_at;
    return access;
}

// Returns the new finding to be filled in, or null when the list is full.
inline Finding* add_finding(const char* kind, const char* format, ...) {
    if (findings.size() >= most_findings) return nullptr;
    Finding finding{};
    finding.argument = -1;
    finding.offset = no_offset;
    snprintf(finding.kind, sizeof finding.kind, "%s", kind);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding.message, sizeof finding.message, format, arguments);
    va_end(arguments);
    findings.push_back(finding);
    return &findings.back();
}

inline void add_access(Finding* finding, const Access& access) {
    if (finding && finding->accesses < 2) finding->access[finding->accesses++] = access;
}

inline bool already_found(const char* kind, Site site) {
    for (const Finding& finding : findings)
        if (!strcmp(finding.kind, kind) && finding.accesses && finding.access[0].line == site.line &&
            !strcmp(finding.access[0].file, site.file ? site.file : ""))
            return true;
    return false;
}

}  // namespace cuda_cpu
