// Descriptions of a container: what it says of its streams, without anything to read from.
#pragma once

#include <libavformat/avformat.h>

// A copy of what a context says of its streams, chapters and metadata, that nothing can be read
// from. The caller frees it (avformat_free_context()). NULL without memory.
AVFormatContext *format_describe(const AVFormatContext *from);
