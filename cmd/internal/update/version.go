package update

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// CompareVersions compares semantic versions: 1.2.3-rc.1 is less than 1.2.3.
func CompareVersions(a, b string) int {
	an, ap, _ := strings.Cut(a, "-")
	bn, bp, _ := strings.Cut(b, "-")
	as, bs := strings.Split(an, "."), strings.Split(bn, ".")
	for i := range min(len(as), len(bs)) {
		if n := compareParts(as[i], bs[i]); n != 0 {
			return n
		}
	}
	switch {
	case ap == bp:
		return 0
	case ap == "":
		return 1
	case bp == "":
		return -1
	}
	as, bs = strings.Split(ap, "."), strings.Split(bp, ".")
	for i := range min(len(as), len(bs)) {
		if n := compareParts(as[i], bs[i]); n != 0 {
			return n
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// compareParts compares parts of versions; as in semver, numbers are less than texts.
func compareParts(a, b string) int {
	x, xerr := strconv.ParseUint(a, 10, 64)
	y, yerr := strconv.ParseUint(b, 10, 64)
	switch {
	case xerr == nil && yerr == nil:
		return cmp.Compare(x, y)
	case xerr == nil:
		return -1
	case yerr == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// machines are the processors of the released programs for Linux.
var machines = []struct {
	platform string
	machine  elf.Machine
	order    elf.Data
}{
	{"linux-amd64", elf.EM_X86_64, elf.ELFDATA2LSB}, {"linux-arm64", elf.EM_AARCH64, elf.ELFDATA2LSB},
	{"linux-arm", elf.EM_ARM, elf.ELFDATA2LSB}, {"linux-riscv64", elf.EM_RISCV, elf.ELFDATA2LSB},
	{"linux-386", elf.EM_386, elf.ELFDATA2LSB},
}

// checkProgram returns an error if a file is not a program for the platform, whatever its signed name.
func checkProgram(data []byte, platform string) error {
	for _, m := range machines {
		if m.platform != platform {
			continue
		}
		f, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("the file is not a program for %s: %w", platform, err)
		}
		// guard: update TestRefusals
		if f.Machine != m.machine || f.Data != m.order {
			return fmt.Errorf("the file is a program for %s, not for %s", f.Machine, platform)
		}
		return nil
	}
	if !strings.HasPrefix(platform, "linux-") {
		return nil
	}
	return errors.New("brine-update does not support " + platform)
}
