// Descriptions of a container: what it says of its streams, without anything to read from.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>

// A copy of what a context says of its streams, chapters and metadata, that nothing can be read
// from. The caller frees it (avformat_free_context()). NULL without memory.
AVFormatContext *format_describe(const AVFormatContext *from);

// The stream of video of a file that has just been opened. Where the header names none, as that of
// FLV, its first packets are looked at; they are read nevertheless. Below 0: there is none.
int format_find_video(AVFormatContext *file);

// Read a packet as av_read_frame() does. Where reading failed that is the error, though the demuxer
// may take it for the end, or give what it has of a packet.
int format_read(AVFormatContext *file, AVPacket *packet);

// True if what format_read() returned is the end, also that of a file that was cut.
bool format_has_ended(int error);
