// Scripts: what the tasks of a farm run, as text for the engines that there are.
//
// The contract of a task is the same everywhere: it makes one part, by the number that the engine
// gives it. It may run again, and twice at once. Its exit code is 0 if the part is there: also
// where sluice says 3, that the input was damaged, since the part is whole and says so itself.
#pragma once

#include <stdio.h>

#include "app/farm/farm.h"

// part.sh, join.sh and audit.sh of Slurm's jobs, which also run by themselves: 'sh part.sh 17'.
void script_part(const struct farm *farm, FILE *to);
void script_join(const struct farm *farm, FILE *to);
void script_audit(const struct farm *farm, FILE *to);

// One line for a shell: parts by xargs, then the join and the audit.
void script_xargs(const struct farm *farm, FILE *to);

// Manifests of Kubernetes: an Indexed Job of the parts, and a suspended one that joins and audits.
// `image` has sluice; `claim` is the PersistentVolumeClaim of the farm's folder.
void script_kubernetes(const struct farm *farm, const char *image, const char *claim, FILE *to);
