package disk

import (
	"context"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func hdparms(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(ask(ctx, c, c.Value("args")))
}

// ask runs hdparm for disk.hdparms, and returns the values by disk.
func ask(ctx context.Context, c *modules.Call, args any) (map[string]any, error) {
	if err := saltcmd.Needs(c, "hdparm"); err != nil {
		return nil, err
	}
	flags := pytext.Str(args)
	if list, ok := args.([]any); ok {
		flags = strings.Join(saltcmd.Words(list...), "")
	}
	disks, ok := c.Value("disks").([]any)
	if !ok {
		disks = []any{c.Value("disks")}
	}
	out := map[string]any{}
	for _, d := range disks {
		disk, ok := d.(string)
		if !ok {
			return nil, modules.NoAttribute(d, "startswith")
		}
		if !strings.HasPrefix(disk, "/dev") {
			disk = "/dev/" + disk
		}
		text, err := hdparm(ctx, c, false, "-"+flags, disk)
		if err != nil {
			return nil, err
		}
		out[disk] = parameters(text, disk)
	}
	return out, nil
}

// hdparm runs hdparm; with must its failure is an error.
func hdparm(ctx context.Context, c *modules.Call, must bool, args ...any) (string, error) {
	r, err := saltcmd.All(ctx, c, append([]any{"hdparm"}, args...)...)
	if err != nil {
		return "", err
	}
	if r.Retcode != 0 {
		text := "hdparm " + strings.Join(saltcmd.Words(args...), " ") + ": " + r.Stderr
		if must {
			return "", modules.Errorf("%s", text)
		}
		c.Logger().Warn("Hdparm failed", "err", text)
	}
	return r.Stdout, nil
}

// parameters reads lines such as "readonly = 0 (off)".
func parameters(text, disk string) map[string]any {
	out := map[string]any{}
	for _, line := range pytext.SplitLines(text, false) {
		line = pytext.Strip(line)
		if line == "" || line == disk+":" {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if ok {
			key = strings.TrimSuffix(key, " is")
		} else if key, value, ok = strings.Cut(line, "="); !ok {
			continue
		}
		if v := parameter(pytext.Strip(value)); v != nil {
			out[strings.ReplaceAll(strings.ToLower(pytext.Strip(key)), " ", "_")] = v
		}
	}
	return out
}

func parameter(text string) any {
	if number, rest, ok := strings.Cut(text, " ("); ok && digits(number) && strings.Contains(rest, ")") {
		n, _ := strconv.ParseInt(number, 10, 64)
		word, _, _ := strings.Cut("("+rest, " ")
		return []any{n, strings.Trim(word, "()")}
	}
	var list []any
	named := map[string]any{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == ',' }) {
		part = pytext.Strip(part)
		if n, err := modules.ToInt(part); err == nil {
			list = append(list, n)
		} else if key, v, ok := strings.Cut(part, "="); ok {
			if v = pytext.Strip(v); v != "" {
				named[pytext.Strip(key)] = v
			}
		} else if part != "" {
			list = append(list, part)
		}
	}
	if len(named) > 0 {
		list = append(list, named)
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

func hpa(ctx context.Context, c *modules.Call) (any, error) {
	asked, err := ask(ctx, c, "N")
	if err != nil {
		return nil, err
	}
	out, totals := map[string]any{}, map[string]int64{}
	for disk, data := range asked {
		visible, total, status, err := area(data.(map[string]any))
		if err != nil {
			return nil, err
		}
		m := map[string]any{"total": total}
		if visible != total && !strings.Contains(status, "disabled") {
			m["visible"], m["hidden"] = visible, total-visible
		}
		out[disk], totals[disk] = m, total
	}
	size := c.Value("size")
	if size == nil {
		return out, nil
	}
	for disk, total := range totals {
		sectors := ""
		if n, err := modules.ToInt(size); err == nil {
			sectors = strconv.FormatInt(left(total-n, total), 10)
		} else if text := pytext.Str(size); strings.Contains(text, "%") {
			p, err := modules.ToInt(strings.Trim(text, "%"))
			if err != nil {
				return nil, err
			}
			sectors = strconv.FormatInt(left((100-p)*total/100, total), 10)
		} else {
			return nil, err
		}
		if _, err := hdparm(ctx, c, true, "--yes-i-know-what-i-am-doing", "-Np"+sectors, disk); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func left(n, total int64) int64 {
	if n <= 0 {
		return total
	}
	return n
}

// area reads "max sectors = 500118192/500118192, HPA is disabled".
func area(data map[string]any) (visible, total int64, status string, err error) {
	for _, v := range data {
		list, ok := v.([]any)
		if !ok || len(list) != 3 {
			break
		}
		a, ok1 := list[0].(int64)
		b, ok2 := list[1].(int64)
		if !ok1 || !ok2 {
			break
		}
		return a, b, pytext.Str(list[2]), nil
	}
	if len(data) == 0 {
		return 0, 0, "", &modules.PythonError{Type: "StopIteration"}
	}
	return 0, 0, "", &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack"}
}

func smartAttributes(ctx context.Context, c *modules.Call) (any, error) {
	dev := c.Str("dev")
	if !strings.HasPrefix(dev, "/dev/") {
		dev = "/dev/" + dev
	}
	r, err := saltcmd.All(ctx, c, "smartctl", "--attributes", dev)
	if err != nil {
		return nil, err
	}
	if r.Retcode != 0 {
		return nil, modules.Errorf("%s", r.Stderr)
	}
	out := map[any]any{}
	var fields []string
	for _, line := range r.Lines() {
		words := strings.Fields(line)
		switch {
		case fields == nil && strings.HasPrefix(line, "ID#"):
			for _, w := range words[1:] {
				fields = append(fields, strings.ToLower(w))
			}
		case fields == nil:
		case len(words) == 0 || !digits(words[0]):
			return out, nil
		default:
			id, _ := strconv.ParseInt(words[0], 10, 64)
			if v := c.Value("attributes"); v == nil || chosen(v, id) {
				out[id] = attribute(fields, words[1:], c.Value("values"))
			}
		}
	}
	return out, nil
}

func chosen(list any, v any) bool {
	l, ok := list.([]any)
	return ok && slices.Contains(l, v)
}

// attribute names the columns of a line; the last one is all that is left.
func attribute(fields, words []string, wanted any) map[string]any {
	out := map[string]any{}
	for i, f := range fields {
		if i >= len(words) || wanted != nil && !chosen(wanted, f) {
			continue
		}
		text := words[i]
		if i == len(fields)-1 {
			text = strings.Join(words[i:], " ")
		}
		out[f] = numbers(text)
	}
	return out
}

func numbers(text string) any {
	if n, err := modules.ToInt(text); err == nil {
		return n
	}
	var list []any
	for _, w := range strings.Split(text, " ") {
		n, err := modules.ToInt(w)
		if err != nil {
			return text
		}
		list = append(list, n)
	}
	return list
}

// samples are the lines of numbers below a header.
type samples struct {
	header []string
	rows   [][]*big.Rat
}

// average returns the mean of each column with two decimals, rounded half to even like Python's decimals.
func (s *samples) average() map[string]any {
	out := map[string]any{}
	for i, h := range s.header {
		sum, n := new(big.Rat), int64(0)
		for _, row := range s.rows {
			if i < len(row) {
				sum.Add(sum, row[i])
				n++
			}
		}
		if n == 0 || n < int64(len(s.rows)) {
			continue
		}
		sum.Quo(sum, new(big.Rat).SetInt64(n))
		f, _ := halfEven(sum).Float64()
		out[h] = f
	}
	return out
}

func halfEven(r *big.Rat) *big.Rat {
	scaled := new(big.Rat).Mul(r, big.NewRat(100, 1))
	q, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	switch twice := new(big.Int).Lsh(rest.Abs(rest), 1); twice.Cmp(scaled.Denom()) {
	case 1:
		q.Add(q, big.NewInt(int64(scaled.Sign())))
	case 0:
		if q.Bit(0) == 1 {
			q.Add(q, big.NewInt(int64(scaled.Sign())))
		}
	}
	return new(big.Rat).SetFrac(q, big.NewInt(100))
}

func row(words []string) ([]*big.Rat, error) {
	out := make([]*big.Rat, len(words))
	for i, w := range words {
		r, ok := new(big.Rat).SetString(w)
		if !ok || len(w) > 40 {
			return nil, &modules.PythonError{Type: "InvalidOperation", Msg: "[<class 'decimal.ConversionSyntax'>]"}
		}
		out[i] = r
	}
	return out, nil
}

func iostat(ctx context.Context, c *modules.Call) (any, error) {
	if err := saltcmd.Needs(c, "iostat"); err != nil {
		return nil, err
	}
	bsd := c.Grain("kernel") == "FreeBSD"
	interval, count, disks := c.Value("interval"), c.Value("count"), c.Value("disks")
	cmd := []any{"iostat", "-x"}
	switch {
	case disks == nil && bsd:
		cmd[1] = "-xC"
	case disks != nil && !bsd:
		cmd[1] = "-xd"
	}
	if bsd {
		times := "-c"
		cmd = append(cmd, "-w", interval, times, count)
	} else {
		cmd = append(cmd, interval, count)
	}
	switch v := disks.(type) {
	case nil:
	case []any:
		cmd = append(cmd, v...)
	default:
		cmd = append(cmd, v)
	}
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	return parseIostat(r.Lines())
}

// parseIostat reads the blocks of iostat: a line with percentages below avg-cpu, and lines of disks below Device.
func parseIostat(lines []string) (any, error) {
	all := map[string]*samples{}
	add := func(name string, header, words []string) error {
		r, err := row(words)
		if err != nil {
			return err
		}
		if all[name] == nil {
			all[name] = &samples{header: header}
		}
		all[name].rows = append(all[name].rows, r)
		return nil
	}
	var sys, dev []string
	cpu, disks := false, false
	for _, line := range lines {
		words := strings.Fields(line)
		var err error
		switch {
		case cpu:
			cpu, err = false, add("sys", sys, words)
		case strings.HasPrefix(line, "avg-cpu:"):
			if cpu = true; sys == nil {
				sys = words[1:]
			}
		case strings.HasPrefix(line, "Device:") || strings.HasPrefix(line, "device"):
			if disks = true; dev == nil {
				dev = words[1:]
			}
		case disks && len(words) > 0:
			err = add(words[0], dev, words[1:])
		default:
			disks = false
		}
		if err != nil {
			return nil, err
		}
	}
	out := map[string]any{}
	for name, s := range all {
		out[name] = s.average()
	}
	return out, nil
}
