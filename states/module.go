package states

import (
	"context"

	"github.com/brine-salt/brine/modules"
)

// Func is the body of a state function. It must return soon after ctx ends, because nothing interrupts it.
type Func func(ctx context.Context, c *Call) (*Result, error)

// A Module is one Salt state module. Declare it as a package variable of constants and functions, so that nothing
// runs when a program starts.
type Module struct {
	// Name is the name of the file in Salt's states directory ("file", "postgres_user", "rabbitmq_user").
	Name string
	// Virtual is the name by which its functions are called, if that is another.
	Virtual string
	// Doc describes the module (sys.state_doc of the bare module name).
	Doc string
	// Docs is the content of docs.txt.gz, as that of a [modules.Module].
	Docs *string
	// Available reports whether this host can use the module, and why not; nil means always. Salt's __virtual__.
	Available func(e *modules.Env) (ok bool, reason string)
	// Needs is an execution function without which the host cannot use the module. Otherwise is the reason that is
	// then reported.
	Needs, Otherwise string
	// Funcs are the module's functions, mod_watch among them.
	Funcs []Def
	// Init is mod_init: it runs before the first state of the module, until it returns true. c.Low is that state's
	// chunk.
	Init func(ctx context.Context, c *Call) (bool, error)
	// Aggregate is mod_aggregate: it may change the chunk c.Low before it runs, by what it finds in the other
	// chunks.
	Aggregate func(ctx context.Context, c *Call, chunks []*Low) error
	// RunsCheckCmd is mod_run_check_cmd: functions of the module that declare check_cmd evaluate it themselves, for
	// example on a file before it replaces the old one.
	RunsCheckCmd bool
}

// Called returns the name by which the module's functions are called.
func (m *Module) Called() string {
	if m.Virtual != "" {
		return m.Virtual
	}
	return m.Name
}

// A Def declares one state function.
type Def struct {
	// Name is the name after the dot. Python is the name of Salt's Python function, where it differs.
	Name, Python string
	// Doc is the text that sys.state_doc shows. It is empty if Docs of the module has it.
	Doc string
	// Params are the named parameters in Salt's order.
	Params []modules.Param
	// Args and Kwargs name the parameters for further arguments (*args, **kwargs), "" if there are none.
	Args, Kwargs string
	// Run is the body.
	Run Func
}

// moduleDef returns the declaration in the form of an execution module's, for sys.state_argspec and sys.state_doc.
func (d *Def) moduleDef() modules.Def {
	return modules.Def{Name: d.Name, Python: d.Python, Doc: d.Doc, Params: d.Params, Args: d.Args, Kwargs: d.Kwargs}
}

// findDef returns the declaration of a function, nil if the module has none of that name.
func (m *Module) findDef(fun string) *Def {
	for i := range m.Funcs {
		if m.Funcs[i].Name == fun {
			return &m.Funcs[i]
		}
	}
	return nil
}

// Declare returns the module in the form in which [modules.Env] lists modules, with the special functions that
// Salt's loader shows among the others.
func (m *Module) Declare() *modules.Module {
	d := &modules.Module{Name: m.Name, Virtual: m.Virtual, Doc: m.Doc, Docs: m.Docs, Available: m.Available}
	for i := range m.Funcs {
		d.Funcs = append(d.Funcs, m.Funcs[i].moduleDef())
	}
	low := modules.Param{Name: "low"}
	if m.Init != nil {
		d.Funcs = append(d.Funcs, modules.Def{Name: "mod_init", Params: []modules.Param{low},
			Doc: "Prepare for the states of this module; the state system calls it once per run."})
	}
	if m.Aggregate != nil {
		d.Funcs = append(d.Funcs, modules.Def{Name: "mod_aggregate", Params: []modules.Param{low, {Name: "chunks"}, {Name: "running"}},
			Doc: "Join states of this module that can be done in one; the state system calls it before each one."})
	}
	if m.RunsCheckCmd {
		d.Funcs = append(d.Funcs, modules.Def{Name: "mod_run_check_cmd", Kwargs: "check_cmd_opts",
			Params: []modules.Param{{Name: "cmd"}, {Name: "filename"}},
			Doc:    "Run a command on a file before it is put in place, for the functions that take check_cmd."})
	}
	return d
}
