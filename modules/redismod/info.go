package redismod

import (
	"strconv"
	"strings"
)

// parseInfo reads the answer to INFO as redis-py does: numbers are numbers, lists lists and "a=1,b=2" dictionaries.
func parseInfo(text string) map[string]any {
	out := map[string]any{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			raw, _ := out["__raw__"].([]any)
			out["__raw__"] = append(raw, line)
			continue
		}
		if key == "cmdstat_host" {
			at := strings.LastIndexByte(line, ':')
			key, value = line[:at], line[at+1:]
		}
		if key == "module" {
			list, _ := out["modules"].([]any)
			out["modules"] = append(list, infoValue(value))
			continue
		}
		out[key] = infoValue(value)
	}
	return out
}

func infoValue(text string) any {
	if strings.Contains(text, "=") {
		sub := map[string]any{}
		for item := range strings.SplitSeq(text, ",") {
			if item == "" {
				continue
			}
			if at := strings.LastIndexByte(item, '='); at >= 0 {
				sub[item[:at]] = infoValue(item[at+1:])
			} else {
				sub[item] = true
			}
		}
		return sub
	}
	if strings.Contains(text, ",") {
		list := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item != "" {
				list = append(list, infoValue(item))
			}
		}
		return list
	}
	if strings.Contains(text, ".") {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
		return text
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}
