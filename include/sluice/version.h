// Versions of the interface and of the library.
//
// The interface's major number is the shared library's (libsluice.so.1): callers of one major
// number go on working, compiled or as source, with every later minor one. A minor number adds
// functions, enumerators and members, each with a symbol version of its own (SLUICE_1.0,
// SLUICE_1.1, ...).
#pragma once

#define SLUICE_API_MAJOR 1
#define SLUICE_API_MINOR 1
#define SLUICE_API_VERSION (SLUICE_API_MAJOR * 1000 + SLUICE_API_MINOR)

// Functions of the interface; nothing else is visible in libsluice.
#define SLUICE_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// SLUICE_API_VERSION of the library that runs. A program that needs what came with 1.2 asks whether
// it is at least 1002. Any thread.
SLUICE_API int sluice_api_version(void);

// "sluice 0.1.0 (libavformat 59.27, ..., CUDA 13.0)", for people. Static. Any thread.
SLUICE_API const char *sluice_version(void);

#ifdef __cplusplus
}
#endif
