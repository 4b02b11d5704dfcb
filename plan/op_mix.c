// Several planes into one. Which ones is the operation's `source`; there is nothing to ask here.
#include "plan/op_info.h"

const struct op_info op_mix_info = {.name = "mix", .family = OP_FAMILY_MIX};
