package cmdmod

import (
	"context"
	"encoding/base64"
	"runtime"
	"strings"
	"unicode/utf16"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// prepare makes the PowerShell command: the result as JSON, and the whole in base64 if wanted.
func (o *options) preparePowershell(wrap bool) error {
	shell := o.value("shell")
	if shell != "powershell" && shell != "pwsh" {
		return modules.Errorf("Must specify a valid powershell binary. Must be 'powershell' or 'pwsh'")
	}
	if runtime.GOOS != "windows" {
		return keyError("psversion") // Salt reads the version from the registry
	}
	o.pythonShell = o.truth("python_shell", false)
	cmd := pytext.Str(o.cmd)
	if list, ok := o.cmd.([]any); ok {
		words := make([]string, len(list))
		for i, x := range list {
			words[i] = pytext.Str(x)
		}
		cmd = strings.Join(words, " ")
	}
	cmd += " | ConvertTo-JSON"
	if depth := o.value("depth"); depth != nil {
		cmd += " -Depth " + pytext.Str(depth)
	}
	if wrap {
		cmd = "try { " + cmd + " } catch { Write-Error $_ }"
	}
	args := []any{pytext.Str(shell), "-NonInteractive", "-NoProfile", "-ExecutionPolicy", "Bypass"}
	if o.truth("encode_cmd", false) {
		o.cmd = append(args, "-EncodedCommand", encodeCommand("$ProgressPreference='SilentlyContinue'; "+cmd))
	} else {
		o.cmd = append(args, "-Command", cmd)
	}
	return nil
}

// encodeCommand encodes a command for PowerShell: base64 of UTF-16.
func encodeCommand(cmd string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(cmd)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func powershell(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	if err := o.preparePowershell(true); err != nil {
		return nil, err
	}
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	text := res.stdout
	if o.truth("hide_output", false) {
		text = ""
	}
	v, err := parsePowershell(text)
	if err != nil {
		c.Logger().Error("Error converting PowerShell JSON return", "err", err)
		return map[string]any{}, nil
	}
	return v, nil
}

func powershellAll(ctx context.Context, c *modules.Call) (any, error) {
	o, err := readOptions(c)
	if err != nil {
		return nil, err
	}
	if err := o.preparePowershell(false); err != nil {
		return nil, err
	}
	res, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	ret := res.value()
	delete(ret, "stdout")
	list := c.Bool("force_list")
	if res.stdout == "" {
		if list {
			ret["result"] = []any{}
		}
		return ret, nil
	}
	v, err := parsePowershell(res.stdout)
	if err != nil {
		return nil, modules.Errorf("cmd.powershell_all cannot parse the Powershell output.")
	}
	if _, ok := v.([]any); !ok && list {
		v = []any{v}
	}
	ret["result"] = v
	if strings.Contains(res.stderr, "CLIXML") {
		ret["stderr"] = ""
	}
	return ret, nil
}

// parsePowershell parses JSON. Text that is not JSON is returned as a text.
func parsePowershell(text string) (any, error) {
	if text == "" || !strings.ContainsRune(`"{[`, rune(text[0])) {
		text = `"` + text + `"`
	}
	return pyjson.Parse([]byte(text))
}

// psModules lists PowerShell's modules.
func psModules(ctx context.Context, c *modules.Call) []any {
	list := []any{}
	got, err := c.Cmd(ctx, modules.Command{Args: []string{"powershell", "-NonInteractive", "-NoProfile", "-Command",
		"Get-Module -ListAvailable | Select-Object -ExpandProperty Name"}})
	if err != nil {
		return list
	}
	for _, name := range strings.Fields(string(got.Stdout)) {
		list = append(list, name)
	}
	return list
}
