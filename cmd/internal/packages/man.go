package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/version"
)

// roffText escapes a text for a manual page.
func roffText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

func manHead(name, ofBrine string, epoch int64) string {
	return fmt.Sprintf(".TH %s 1 %q %q %q\n", roffText(strings.ToUpper(name)),
		time.Unix(epoch, 0).UTC().Format("2006-01-02"), "brine "+ofBrine,
		"Salt "+version.Salt)
}

func seeAlso(names []string) string {
	var b strings.Builder
	b.WriteString(".SH SEE ALSO\n")
	for i, n := range names {
		comma := " ,"
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roffText(n), comma)
	}
	return b.String()
}

// man returns the manual page of a program.
func (h *help) man(name, ofBrine string, epoch int64, also []string) string {
	var b strings.Builder
	b.WriteString(manHead(name, ofBrine, epoch))
	summary, _, _ := strings.Cut(h.description, ". ")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roffText(name),
		roffText(strings.TrimSuffix(summary, ".")))
	program, rest, _ := strings.Cut(h.usage, " [")
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", roffText(program), roffText("["+rest))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roffText(h.description))
	for i, g := range h.groups {
		if i == 0 {
			b.WriteString(".SH OPTIONS\n")
		} else {
			fmt.Fprintf(&b, ".SS %s\n", roffText(g.title))
		}
		if g.description != "" {
			fmt.Fprintf(&b, "%s\n", roffText(g.description))
		}
		for _, o := range g.options {
			b.WriteString(".TP\n")
			for j, n := range o.names {
				if j > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, `\fB%s\fR`, roffText(n))
				if o.metavar != "" {
					sep := "="
					if !strings.HasPrefix(n, "--") {
						sep = " "
					}
					fmt.Fprintf(&b, `%s\fI%s\fR`, sep, roffText(o.metavar))
				}
			}
			fmt.Fprintf(&b, "\n%s\n", roffText(o.help))
		}
	}
	b.WriteString(seeAlso(also))
	return b.String()
}

// overviewPage returns the manual page of brine-minion or brine-master, which lists the programs that it can run as.
func overviewPage(side, ofBrine string, epoch int64) string {
	name := "brine-" + side
	var b strings.Builder
	b.WriteString(manHead(name, ofBrine, epoch))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- the Salt %s as one program\n", roffText(name), side)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", roffText(name),
		`\fIcommand\fR [\fIoptions\fR] [\fIarguments\fR]`)
	b.WriteString(".SH DESCRIPTION\nThe first argument selects the program. A link with the name " +
		"of one of Salt's programs needs no such argument.\n")
	var also []string
	for _, p := range programs[side] {
		fmt.Fprintf(&b, ".TP\n.B %s\nSee\n.BR %s (1).\n", roffText(p.args[1]), roffText(p.name))
		also = append(also, p.name)
	}
	if side == "minion" {
		b.WriteString(".TP\n.B doctor\nReports what prevents the minion of this host from working, " +
			"and how to repair it.\n")
	} else {
		b.WriteString(".TP\n.B check\nLists everything in a configuration that will not work with brine.\n" +
			".TP\n.B audit\nChecks the chain of an audit_log.\n.TP\n.B demo\nShows a master and " +
			"three minions at work on this host.\n")
	}
	b.WriteString(seeAlso(also))
	return b.String()
}

// compressAll writes compressed copies of files. The same files result in the same bytes.
func compressAll(pattern string) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if _, err := w.Write(text); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(name+".gz", out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
