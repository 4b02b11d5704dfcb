// A filter from the inside.
//
//   filter.c     made, asked, freed          frames.c     submitted and received
//   binding.c    a chain, ready to filter    check.c      what frames are refused for
//   change.c     another chain               planes.c     planes that no backend makes; copies
//   analysis.c   what stages found           pictures.c   pictures that stages look for
//   pixfmt.c     formats by name             objects.c    frames that are objects of Python
//
// Two threads use a filter: one submits and changes, one receives. A member belongs to the one that
// is named; what both may see says so.
#pragma once

#include <stdatomic.h>

#include "filter/known_addresses.h"
#include "filter/pixfmt.h"
#include "plan/budget.h"
#include "sluice/filter.h"
#include "stages/chain.h"

enum { MAX_FRAMES = 64 };

// A chain as it filters the frames of a filter. Immutable once made, but for `users`.
struct binding {
    atomic_int
        users; // the filter while it is the current one, each frame under way, the last result
    int width, height;
    struct chain chain;
    struct program program;
    struct plan *plan;
    struct backend *backend;
    struct executor *executor;
    bool has_fields; // stencils see each by itself
    bool in_place;   // a result on the host may be made over its source

    // The analysis of seat k begins at analysis[k * program.analyses]: there is one seat more than
    // frames under way, for the result that was received last.
    void **analysis;
    int seats;
    struct sluice_match *match; // of the result that was received last, its thread's
};

// The seat of a frame under way: the submitting thread's from when `received` has passed it until
// `submitted` does, the receiving thread's from then on.
struct seat {
    struct sluice_frame out; // with pts and opaque of its source
    struct binding *binding;
    struct image source; // as planes that no backend makes are copied from it
    struct image target; // the caller's
    int number;          // of the analysis
    int followers;       // frames behind this one that the backend was given with it
    bool source_on_device;
    bool device, over;    // the result is in device memory; it is ready or handed over
    bool staged;          // the result is in `target_copy`
    bool in_place;        // planes of the result are planes of the source
    bool interlaced;      // the source is
    enum status status;   // once over
    void *stream;         // the caller's
    uint8_t *source_copy; // memory of the backend's, once it was needed
    uint8_t *target_copy;
};

// Rows of a plane.
struct plane_rows {
    size_t bytes; // of a row
    int rows;
};

struct sluice_filter {
    // ---- constant once made ----
    struct picture_reader reader; // gets the filter
    enum sluice_status (*picture)(void *opaque, const char *name, struct sluice_picture *picture);
    void (*print)(void *opaque, enum sluice_log_level level, const char *sentence);
    void *opaque;
    struct log log;
    struct sluice_format in, out; // names are static
    struct format input, output;
    struct plane_rows input_rows[FORMAT_PLANES], output_rows[FORMAT_PLANES];
    const char *output_pixfmt; // NULL: what the chain leaves
    enum sluice_range output_range;
    bool wavelet_planes;
    struct backend *backend;
    char about[128];
    int slots;
    size_t source_bytes, target_bytes; // of a copy

    // ---- the submitting thread's ----
    struct binding *current;
    struct known_addresses on_device; // planes that were found in the GPU's memory
    struct work work[MAX_FRAMES];     // a submit's; `tee`, `source_abroad`, `source_pts` stay 0

    // ---- both threads' ----
    struct seat seat[MAX_FRAMES]; // of frame n: n % slots
    atomic_ullong submitted, received;
    atomic_bool failed; // the GPU has; nothing works any more

    // ---- the receiving thread's ----
    struct binding *last; // of the frame that was received last
    int last_number;
};

// Write *from, of `size` bytes and of the type that is named, to a caller's struct; USAGE, with a
// sentence, if that has no size.
enum sluice_status filter_tell(const struct sluice_filter *filter, void *to, const void *from,
                               size_t size, const char *type);

static inline enum sluice_status filter_status(enum status status)
{
    return (enum sluice_status)status;
}

// ---- binding.c ----

// Make `chain`, which is taken over and left empty, also on failure, filter the frames of `filter`;
// its `output` and `out` say what it has to make, unless there is no current chain: then they are
// set. Reasons go to `log`. On success the caller has one count of *binding.
enum status binding_create(struct sluice_filter *filter, struct chain *chain, const struct log *log,
                           struct binding **binding);
struct binding *binding_ref(struct binding *binding);

// One less; frees it with the last one, which waits for the GPU. Accepts NULL behind it, leaves
// NULL.
void binding_unref(struct binding **binding);

// ---- check.c ----

// Read a caller's pair of frames into a seat that is free. STATUS_USAGE, with a sentence, if they cannot
// be filtered: what the seat says of them means nothing then.
enum status check_frames(struct sluice_filter *filter, const struct sluice_frame *in,
                         const struct sluice_frame *out, struct seat *seat);

// ---- planes.c ----

// The planes of such a picture.
void planes_measure(const struct sluice_filter *filter, const struct format *format,
                    struct plane_rows *rows);

// Where the planes of a frame are.
struct image planes_of(const struct sluice_filter *filter, const struct format *format,
                       const struct sluice_frame *frame);

// The bytes that a copy of such a picture takes, and where its planes are in `memory`.
size_t planes_bytes(const struct sluice_filter *filter, const struct format *format);
struct image planes_in(const struct sluice_filter *filter, const struct format *format,
                       uint8_t *memory);

// Copy the planes of `mask` (bit p: plane p), those that both have.
void planes_copy(const struct image *from, const struct image *to, unsigned mask);

// The planes of a result that the backend makes.
unsigned planes_made(const struct binding *binding, bool source_on_device);

// Make those that it does not: copy them from the source, or fill them with their constants.
void planes_complete(const struct binding *binding, const struct image *source,
                     const struct image *target, unsigned made);

// ---- pictures.c ----

extern const struct picture_reader pictures_reader; // struct sluice_filter's first member
