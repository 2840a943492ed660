package saltcmd

import (
	"context"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/shlex"
	"github.com/brine-salt/brine/modules"
)

// Words converts the words of a command to text as Salt does: None is "None", 5 is "5".
func Words(list ...any) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = pytext.Str(v)
	}
	return out
}

// Text implements cmd.run with a list: it returns the program's output on both streams.
func Text(ctx context.Context, c *modules.Call, words ...any) (string, error) {
	r, err := Run(ctx, c, Command{Args: Words(words...), Merge: true})
	return r.Stdout, err
}

// All implements cmd.run_all with a list.
func All(ctx context.Context, c *modules.Call, words ...any) (Result, error) {
	return Run(ctx, c, Command{Args: Words(words...)})
}

// Retcode implements cmd.retcode with a list.
func Retcode(ctx context.Context, c *modules.Call, words ...any) (int, error) {
	r, err := Run(ctx, c, Command{Args: Words(words...), Merge: true})
	return r.Retcode, err
}

// Which returns the path of a program that a function needs. The error has the text of Salt's modules.
func Which(c *modules.Call, program string) (string, error) {
	if path := c.Which(program); path != "" {
		return path, nil
	}
	return "", modules.Errorf("Command '%s' cannot be found", program)
}

// Needs implements Salt's decorator for functions that need a program in the PATH: it returns an error if the program
// is missing.
func Needs(c *modules.Call, program string) error {
	if c.Which(program) == "" {
		return &modules.MissingCommandError{Command: "The '" + program + "' binary was not found in $PATH."}
	}
	return nil
}

// Line implements cmd.run_all with a text, which it splits into words as a shell does.
func Line(ctx context.Context, c *modules.Call, line string) (Result, error) {
	words, err := split(line)
	if err != nil {
		return Result{}, err
	}
	return Run(ctx, c, Command{Args: words})
}

// LineText implements cmd.run with a text, which it splits into words as a shell does.
func LineText(ctx context.Context, c *modules.Call, line string) (string, error) {
	words, err := split(line)
	if err != nil {
		return "", err
	}
	r, err := Run(ctx, c, Command{Args: words, Merge: true})
	return r.Stdout, err
}

func split(line string) ([]string, error) {
	words, err := shlex.Split(line)
	if err != nil {
		return nil, &modules.PythonError{Type: "ValueError", Msg: err.Error()}
	}
	return words, nil
}
