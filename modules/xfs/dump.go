package xfs

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func dump(ctx context.Context, c *modules.Call) (any, error) {
	if c.Which("xfsdump") == "" {
		return nil, modules.Errorf(`Utility "xfsdump" has to be installed or missing.`)
	}
	label := c.Value("label")
	if !pytext.Truth(label) {
		label = `XFS dump for "` + strings.ReplaceAll(c.Str("device"), "'", `"`) + `" of ` + c.Now().Local().Format("2006.01.02, 15:04")
	}
	cmd := []any{"xfsdump", "-F"}
	if !c.Bool("noerase") {
		cmd = append(cmd, "-E")
	}
	text, err := run(ctx, c, append(cmd, "-L", label, "-l", c.Value("level"), "-f", c.Value("destination"), c.Value("device"))...)
	if err != nil {
		return nil, err
	}
	return readDump(text), nil
}

// readDump reads what xfsdump prints.
func readDump(text string) map[string]any {
	out := map[string]any{}
	var summary []string
	inSummary := false
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimPrefix(pytext.Strip(line), "xfsdump: ")
		if line == "" {
			continue
		}
		after := func(prefix string) string { return pytext.StripLeft(strings.TrimPrefix(line, prefix)) }
		switch {
		case strings.HasPrefix(line, "session id:"):
			out["Session ID"] = line[strings.LastIndex(line, " ")+1:]
		case strings.HasPrefix(line, "session label:"):
			out["Session label"] = strings.TrimPrefix(line, "session label: ")
		case strings.HasPrefix(line, "media file size"):
			out["Media size"] = after("media file size")
		case strings.HasPrefix(line, "dump complete:"):
			out["Dump complete"] = after("dump complete:")
		case strings.HasPrefix(line, "Dump Status:"):
			out["Status"] = after("Dump Status:")
		case strings.HasPrefix(line, "Dump Summary:"):
			inSummary = true
			continue
		}
		if inSummary = inSummary && strings.HasPrefix(line, " "); inSummary {
			summary = append(summary, pytext.Strip(line))
		}
	}
	if len(summary) > 0 {
		out["Summary"] = strings.Join(summary, " ")
	}
	return out
}

func inventory(ctx context.Context, c *modules.Call) (any, error) {
	text, err := run(ctx, c, "xfsrestore", "-I")
	if err != nil {
		return nil, err
	}
	return readInventory(text)
}

// readInventory reads what xfsrestore prints: "name: value" lines, headings whose lines are indented by one tab more, and the
// status at the end.
func readInventory(text string) (any, error) {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if pytext.Strip(line) != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, modules.Errorf("xfsrestore printed no inventory")
	}
	last := len(lines) - 1
	root := map[string]any{}
	open := []map[string]any{root} // by depth
	for _, line := range lines[:last] {
		depth := min(len(line)-len(strings.TrimLeft(line, "\t")), len(open)-1)
		name, value, _ := strings.Cut(pytext.Strip(line), ":")
		if value != "" {
			open[depth][pytext.Strip(name)] = pytext.Strip(value)
			continue
		}
		m := map[string]any{}
		open[depth][name] = m
		open = append(open[:depth+1], m)
	}
	root["restore_status"] = lines[last]
	return root, nil
}

func pruneDump(ctx context.Context, c *modules.Call) (any, error) {
	id := c.Str("sessionid")
	text, err := run(ctx, c, "xfsinvutil", "-s", id, "-F")
	if err != nil {
		return nil, err
	}
	if m := readPruned(text); m["uuid"] == id {
		return m, nil
	}
	return nil, modules.Errorf(`Session UUID "%s" was not found.`, id)
}

// readPruned reads what xfsinvutil prints between two lines of dashes, a heading and "NAME : value" lines.
func readPruned(text string) map[string]any {
	out := map[string]any{}
	dashes, n := 0, 0
	for _, line := range strings.Split(text, "\n") {
		line = pytext.Strip(line)
		if strings.HasPrefix(line, "-") {
			dashes++
			continue
		}
		if dashes != 1 {
			continue
		}
		n++
		if k, v, ok := strings.Cut(line, ":"); ok && n > 1 {
			out[strings.ReplaceAll(strings.ToLower(pytext.Strip(k)), " ", "_")] = pytext.Strip(v)
		}
	}
	return out
}
