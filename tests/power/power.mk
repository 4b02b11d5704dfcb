# What a disk may hold after a power cut: tests/power.py.

test-run: $(BUILD)/power.so
$(BUILD)/power.so: tests/power/power.c $(BUILD)/flags
	$(CC) -std=gnu11 -O2 -g $(WARNINGS) -shared -fPIC -o $@ $< -ldl

# Many cuts of every kind of output; POWER='--cuts 500 --seed 7' tries more.
POWER ?= --cuts 200 --draws 40
power-cuts: setup-test
	@$(MAKE) --no-print-directory $(PARALLEL) $(BUILD)/sluice $(BUILD)/power.so
	@$(PYTHON) tests/power.py --sluice $(BUILD)/sluice $(POWER)
.PHONY: power-cuts
