# What fails calls of the program, by LD_PRELOAD: tests/faults.py. For x86-64, as its registers are.

ifeq ($(ARCH),x86_64)
test-run: $(BUILD)/faults.so
endif
$(BUILD)/faults.so: tests/faults/faults.c $(BUILD)/flags
	$(CC) -std=gnu11 -O2 -g $(WARNINGS) -shared -fPIC -o $@ $< -ldl

# Every call of every class; FAULTS='--share 500 --seed 7' draws some.
FAULTS ?= --all
faults: setup-test
	@$(MAKE) --no-print-directory $(PARALLEL) $(BUILD)/sluice $(BUILD)/faults.so
	@$(PYTHON) tests/faults.py --sluice $(BUILD)/sluice $(FAULTS)
.PHONY: faults
