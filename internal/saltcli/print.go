package saltcli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
	"github.com/brine-salt/brine/internal/output"
	"github.com/brine-salt/brine/internal/saltlog"
	"github.com/brine-salt/brine/internal/version"
)

// Version returns the text that --version prints after the program's name. Tools parse the first word of it as Salt's
// version.
func Version() string { return version.Salt + " (brine " + version.Brine() + ")" }

// VersionsReport returns the text of --versions-report, in stock's layout.
func VersionsReport() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Salt Version:\n%14s: %s\n%14s: %s\n \n", "Salt", version.Salt, "brine", version.Brine())
	fmt.Fprintf(&b, "Go Version:\n%14s: %s\n \nDependency Versions:\n", "Go", strings.TrimPrefix(runtime.Version(), "go"))
	for _, l := range version.Libraries() {
		fmt.Fprintf(&b, "%14s: %s\n", l.Name, l.Version)
	}
	host, _ := os.Hostname()
	machine, system := version.Host()
	fmt.Fprintf(&b, " \nSystem Versions:\n%14s: %s\n%14s: %s\n%14s: %s\n", "machine", machine, "node", host, "system", system)
	return b.String()
}

// splitLines splits a text as Python's splitlines does, but only at the line ends of text files.
func splitLines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// ConsoleLog returns a logger that writes only to the console, for programs that are not daemons.
func ConsoleLog(console io.Writer, c *conf.Config) (*slog.Logger, error) {
	o := saltlog.FromConfig(c.Opts, "salt", console)
	o.File = ""
	l, err := saltlog.New(o)
	if err != nil {
		return nil, err
	}
	return l.Logger(), nil
}

// OpenLog opens the log of a daemon or of salt-call: on the console and, with file, in a file. If the file cannot be
// opened, the program continues: it logs that error and everything else to the console.
func (p *Program) OpenLog(name string, file bool) error {
	options := func(c *conf.Config) saltlog.Options {
		o := saltlog.FromConfig(c.Opts, name, p.Err)
		if !file {
			o.File = ""
		}
		if p.Values.String("output") == "yaml" {
			o.ConsoleFormat = "# " + o.ConsoleFormat // result and log together must be valid YAML
		}
		return o
	}
	o := options(p.Conf)
	l, err := saltlog.New(o)
	if err != nil && o.File != "" {
		failed := err
		o.File = ""
		if l, err = saltlog.New(o); err == nil {
			l.Logger().Error("Failed to open the log file, logging to the console alone", "err", failed)
		}
	}
	if err != nil {
		return &ExitError{ExitGeneric, fmt.Sprintf("[ERROR   ] %v\n", err)}
	}
	p.Log = l.Logger()
	p.Close = func() { _ = l.Close() }
	p.ReloadLog = func(c *conf.Config) error { return l.Reconfigure(options(c)) }
	for i, file := range p.Conf.Files {
		p.Log.Debug("Reading configuration from "+file, "options", strings.Join(p.Conf.Sets[i], ", "))
	}
	p.Log.Debug("The configuration was read", "ms", p.Took.Milliseconds())
	for _, note := range p.Conf.Notes {
		p.Log.Log(context.Background(), note.Level, p.Conf.Placed(note))
	}
	return nil
}

// Printer prints results as the output options request (salt/output/__init__.py: display_output).
type Printer struct {
	Out      io.Writer
	Opts     map[string]any
	Terminal bool
	Log      *slog.Logger
	// KeepOrder makes nested keep the order of payload.OrderedMap values.
	KeepOrder bool
}

// Outputter returns the outputter for a result: the command line's, or own, which came with the result, or nested.
func (p *Printer) Outputter(own string) string {
	name := own
	if cli, ok := p.Opts["output"].(string); ok && cli != "" && cli != "highstate" {
		name = cli
	}
	switch name {
	case "text":
		return "txt"
	case "":
		return "nested"
	}
	return name
}

// InOrder reports whether the outputter for a result keeps the order of dictionaries. Other outputters sort the keys.
func (p *Printer) InOrder(own string) bool {
	switch p.Outputter(own) {
	case "json", "raw", "txt":
		return true
	}
	return false
}

// options returns the options for package output.
func (p *Printer) options(retcode int) output.Options {
	o := output.OptionsFrom(p.Opts, output.Options{Retcode: retcode, Color: p.color(), KeepOrder: p.KeepOrder})
	if n, ok := p.Opts["output_indent"].(int64); ok {
		i := int(n)
		o.Indent = &i
	}
	return o
}

// plain reports whether results are printed for people: the command line did not select another format.
func (p *Printer) plain() bool {
	cli, _ := p.Opts["output"].(string)
	return cli == "" || cli == "highstate" || cli == "nested"
}

// Print prints a value with the outputter own; "" means nested. retcode is the return code that came with the value.
func (p *Printer) Print(v any, own string, retcode int) error {
	return p.print(v, own, p.options(retcode))
}

func (p *Printer) print(v any, own string, o output.Options) error {
	text, err := output.Render(p.Outputter(own), v, o)
	if err != nil {
		p.Log.Error(fmt.Sprintf("Invalid outputter %s specified, fall back to nested", p.Outputter(own)))
	}
	text = strings.TrimRight(text, " \t\r\n\v\f")
	if text == "" {
		return nil
	}
	if file, _ := p.Opts["output_file"].(string); file != "" {
		return appendTo(file, text+"\n")
	}
	_, err = io.WriteString(p.Out, text+"\n")
	return err
}

func (p *Printer) color() bool {
	on := func(key string) bool { return conf.Truth(p.Opts[key]) }
	return on("force_color") || p.Terminal && !on("no_color") && runtime.GOOS != "windows"
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	_, err = io.WriteString(f, text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
