// Packets and frames of a running job, for who shows or keeps them beside it: the control page.
//
// The job calls the tap and waits for it: a tap takes references and returns. Without one the job
// pays a comparison a frame.
#pragma once

#include <libavutil/frame.h>
#include <stdint.h>

#include "plan/rotation.h"

struct packet;

// Properties that a frame does not have itself.
struct tap_frame {
    AVRational time_base;              // frame->pts counts in it
    int64_t pts_us;                    // frame->pts in microseconds
    void *device_stream;               // frames on the GPU become valid on it; else NULL
    enum AVPixelFormat software_pixel; // frames on the GPU: the software format of the video
    struct rotation rotation; // how players turn it, and what is filtered of it, for showing
};

// All members are optional.
struct tap {
    void *opaque;

    // A packet of the filtered stream, as it was read, and before it is decoded. It stays the
    // job's; packet_clone() shares its data. The demux thread; before the threads are there, the
    // one in sluice_job_run().
    void (*packet)(void *opaque, const struct packet *packet);

    // A decoded frame that will be filtered; one that is too late for that is not shown. It stays
    // the job's and must not be written to; av_frame_ref() keeps it, at the cost of one of the
    // decoder's frames, of which there may be few: keep one or two. The submit thread; the first
    // frame: the thread in sluice_job_run().
    void (*frame)(void *opaque, const AVFrame *frame, const struct tap_frame *about);

    int64_t memory; // bytes that may be held beside the job, for the bound that the job tells
};
