package grains

import (
	"strconv"
	"strings"
)

// dmesgFlags returns the first processor's features from FreeBSD's boot messages.
func dmesgFlags(text string) []string {
	flags := []string{}
	inside := false
	for _, line := range lines(text) {
		switch {
		case strings.HasPrefix(line, "CPU: "):
			inside = true
		case inside && !strings.HasPrefix(line, " "):
			return flags
		case inside && strings.Contains(line, "Features"):
			if _, rest, ok := strings.Cut(line, "<"); ok {
				if list, _, ok := strings.Cut(rest, ">"); ok {
					flags = append(flags, strings.Split(list, ",")...)
				}
			}
		}
	}
	return flags
}

// geomDisks parses "geom disk list" into a map by name, and the names of the disks that do not rotate.
func geomDisks(out string) map[string]any {
	disks, solid := map[string]any{}, []any{}
	for block := range strings.SplitSeq(out, "\n\n") {
		d := map[string]any{}
		name := ""
		for _, line := range lines(block) {
			key, value, ok := strings.Cut(line, ": ")
			if !ok {
				continue
			}
			key = strings.TrimLeft(key, "0123456789. ")
			switch key {
			case "Geom name":
				name = value
			case "Mediasize", "descr", "lunid", "lunname", "ident":
				d[key] = value
			case "Sectorsize", "Stripesize", "Stripeoffset", "rotationrate":
				d[key] = nil
				if n, err := strconv.ParseInt(value, 10, 64); err == nil {
					d[key] = n
				}
			}
			if alias := geomAlias(key); alias != "" {
				d[alias] = d[key]
			}
		}
		if name == "" || strings.HasPrefix(name, "cd") {
			continue
		}
		disks[name] = d
		if d["rotationrate"] == any(int64(0)) {
			solid = append(solid, name)
		}
	}
	return map[string]any{"disks": disks, "ssds": solid}
}

func geomAlias(key string) string {
	switch key {
	case "descr":
		return "device_model"
	case "ident":
		return "serial_number"
	case "rotationrate":
		return "media_RPM"
	case "lunid":
		return "WWN"
	}
	return ""
}

// swapUsage parses "total = 2048.00M  used = …" and returns MiB.
func swapUsage(s string) int64 {
	f := strings.Fields(s)
	if len(f) < 3 || f[2] == "" {
		return 0
	}
	text := strings.ReplaceAll(f[2], ",", ".")
	n, err := strconv.ParseFloat(text[:len(text)-1], 64)
	if err != nil {
		return 0
	}
	switch text[len(text)-1] {
	case 'K':
		n /= 1024
	case 'G':
		n *= 1024
	}
	return int64(n)
}

func macGraphics(out string) map[string]any {
	gpus := []any{}
	for _, line := range lines(out) {
		if key, value, ok := strings.Cut(line, ": "); ok &&
			strings.TrimSpace(key) == "Chipset Model" {
			vendor, model, _ := strings.Cut(value, " ")
			gpus = append(gpus, map[string]any{"vendor": strings.ToLower(vendor), "model": model})
		}
	}
	kind := "physical"
	switch l := strings.ToLower(out); {
	case strings.Contains(l, "virtualbox"):
		kind = "VirtualBox"
	case containsAny(l, "vmware", "0x15ad"):
		kind = "VMware"
	case containsAny(l, "parallels", "0x1ab8"):
		kind = "Parallels"
	}
	return map[string]any{"gpus": gpus, "num_gpus": int64(len(gpus)), "virtual": kind}
}
