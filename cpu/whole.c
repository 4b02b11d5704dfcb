#include "cpu/whole.h"

enum status whole_create(const struct whole_request *request, struct whole **whole)
{
    *whole = NULL;
    switch (request->op->kind) {
    case OP_STATISTICS:
        return statistics_create(request, whole);
    case OP_WAVELET:
        return wavelet_create(request, whole);
    case OP_MATCH:
        return match_create(request, whole);
    case OP_MARK:
        return mark_create(request, whole);
    default:
        return STATUS_FAILED;
    }
}
