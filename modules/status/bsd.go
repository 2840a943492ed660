package status

import (
	"strings"
)

// What the programs of the BSDs print.

// words is a word of a line by its place, "" beyond the end.
func word(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

func fieldsAt(text string, line int) []string {
	list := strings.Split(text, "\n")
	if line >= len(list) {
		return nil
	}
	return strings.Fields(list[line])
}

func index(list []string, name string) int {
	for i, x := range list {
		if x == name {
			return i
		}
	}
	return -1
}

// parseVmstatP reads vmstat -P: the processors' names are in the first line, their shares in the third.
func parseVmstatP(text string) map[string]any {
	heads, names, values := fieldsAt(text, 0), fieldsAt(text, 1), fieldsAt(text, 2)
	first, us := index(heads, "cpu0"), index(names, "us")
	ret := map[string]any{}
	if first < 0 || us < 0 {
		return ret
	}
	for i, cpu := range heads[first:] {
		ret[cpu] = map[string]any{"us": number(word(values, us+3*i)), "sy": number(word(values, us+1+3*i)),
			"id": number(word(values, us+2+3*i))}
	}
	return ret
}

// parseSystat reads systat -B cpu: the names are in the fourth line.
func parseSystat(text string) map[string]any {
	ret := map[string]any{}
	fields := fieldsAt(text, 3)
	list := strings.Split(text, "\n")
	for _, line := range list[min(4, len(list)):] {
		comps := strings.Fields(line)
		if len(comps) == 0 {
			continue
		}
		m := map[string]any{}
		for i, f := range fields[min(1, len(fields)):] {
			m[f] = word(comps, i+1)
		}
		ret[comps[0]] = m
	}
	return ret
}

func parseSysctlVM(vm, total string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(vm) {
		comps := strings.Split(line, ":")
		if strings.HasPrefix(line, "vm") && len(comps) > 1 && strings.TrimSpace(comps[1]) != "" {
			ret[strings.TrimSpace(comps[0])] = strings.TrimSpace(comps[1])
		}
	}
	list := []any{}
	for _, line := range lines(total) {
		list = append(list, line)
	}
	ret["vm.vmtotal"] = list
	return ret
}

// parseVmstat reads OpenBSD's vmstat: memory and pages are columns of the third line.
func parseVmstat(text string) map[string]any {
	values, ret := fieldsAt(text, 2), map[string]any{}
	for i, name := range [...]string{"active virtual pages", "free list size", "page faults", "pages reclaimed", "pages paged in",
		"pages paged out", "pages freed", "pages scanned"} {
		if v := word(values, i+2); v != "" {
			ret[name] = v
		}
	}
	return ret
}

func parseSysctl(text, sep string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(text) {
		if comps := strings.Split(line, sep); len(comps) > 1 {
			ret[strings.TrimSpace(comps[0])] = strings.TrimSpace(comps[1])
		}
	}
	return ret
}

// parseIostat reads iostat -x: the names are in the second line.
func parseIostat(text string) map[string]any {
	ret := map[string]any{}
	header := fieldsAt(text, 1)
	list := strings.Split(text, "\n")
	for _, line := range list[min(2, len(list)):] {
		comps := strings.Fields(line)
		if len(comps) == 0 {
			continue
		}
		m := map[string]any{}
		for i := 1; i < len(header) && i < len(comps); i++ {
			m[header[i]] = number(comps[i])
		}
		ret[comps[0]] = m
	}
	return ret
}

func parseVmstatS(text string) map[string]any {
	ret := map[string]any{}
	for _, line := range lines(text) {
		comps := strings.Fields(line)
		if len(comps) == 0 {
			continue
		}
		if _, ok := number(comps[0]).(int64); ok {
			ret[strings.Join(comps[1:], " ")] = number(comps[0])
		}
	}
	return ret
}

// parseNetstatS reads netstat -s: protocols, and below each what is indented once.
func parseNetstatS(text string) map[string]any {
	ret := map[string]any{}
	var current map[string]any
	for _, line := range lines(text) {
		comps := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "\t\t") || len(comps) == 0:
		case !strings.HasPrefix(line, "\t"):
			current = map[string]any{}
			ret[strings.ReplaceAll(comps[0], ":", "")] = current
		case current != nil:
			if _, ok := number(comps[0]).(int64); ok {
				current[strings.Join(comps[1:], " ")] = comps[0]
			}
		}
	}
	return ret
}

// parseNetstatI reads netstat -i for both families: interface, network, address, then the columns from the fifth on.
func parseNetstatI(v4, v6 string) map[string]any {
	ret := map[string]any{}
	list := lines(v4)
	if len(list) == 0 {
		return ret
	}
	header := strings.Fields(list[0])
	list = list[1:]
	if more := lines(v6); len(more) > 0 {
		list = append(list, more[1:]...)
	}
	sub := func(m map[string]any, key string) map[string]any {
		next, ok := m[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[key] = next
		}
		return next
	}
	for _, line := range list {
		comps := strings.Fields(line)
		if len(comps) < 5 {
			continue
		}
		m := sub(sub(sub(ret, comps[0]), comps[2]), comps[3])
		for i := 4; i < 13 && i < len(comps) && i < len(header); i++ {
			m[header[i]] = number(comps[i])
		}
	}
	return ret
}

// parseLoad reads sysctl -n vm.loadavg, which has braces on some systems.
func parseLoad(text string) (map[string]any, bool) {
	comps := strings.Fields(strings.Trim(text, "{} \n"))
	if len(comps) < 3 {
		return nil, false
	}
	ret := map[string]any{}
	for i, name := range [...]string{"1-min", "5-min", "15-min"} {
		switch n := number(comps[i]).(type) {
		case float64:
			ret[name] = n
		case int64:
			ret[name] = float64(n)
		default:
			return nil, false
		}
	}
	return ret, true
}
