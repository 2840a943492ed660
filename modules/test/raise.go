package test

import (
	"context"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func exception(_ context.Context, c *modules.Call) (any, error) {
	return nil, &modules.PythonError{Type: "Exception", Msg: c.Str("message")}
}

func assertion(_ context.Context, c *modules.Call) (any, error) {
	if !c.Bool("assertion") {
		return nil, &modules.PythonError{Type: "AssertionError"}
	}
	return nil, nil
}

func raiseException(_ context.Context, c *modules.Call) (any, error) {
	name := c.Str("name")
	salt, isSalt := strings.CutPrefix(name, "salt.exceptions.")
	known := builtinExceptions
	if isSalt {
		name, known = salt, saltExceptions
	}
	if !slices.Contains(strings.Fields(known), name) {
		c.Logger().Error("No such exception", "name", name)
		return false, nil
	}
	msg := message(c.Extra)
	switch name {
	case "CommandExecutionError":
		return nil, modules.Errorf("%s", msg)
	case "SaltInvocationError":
		return nil, modules.Usagef("%s", msg)
	case "CommandNotFoundError":
		return nil, &modules.MissingCommandError{Command: msg}
	case "TypeError":
		return nil, &modules.TypeError{Msg: msg}
	}
	return nil, &modules.PythonError{Type: name, Msg: msg}
}

// message implements Python's str() of an exception.
func message(args []any) string {
	switch len(args) {
	case 0:
		return ""
	case 1:
		return pytext.Str(args[0])
	}
	return tuple(args)
}

// builtinExceptions are the exception classes among Python's built-in names that derive from Exception.
const builtinExceptions = `ArithmeticError AssertionError AttributeError BaseExceptionGroup BlockingIOError BrokenPipeError BufferError
BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError
DeprecationWarning EOFError EncodingWarning EnvironmentError Exception ExceptionGroup FileExistsError FileNotFoundError
FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError IndexError
InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
NotADirectoryError NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError
ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration
StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError
UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning
ZeroDivisionError`

// saltExceptions are the classes of salt/exceptions.py.
const saltExceptions = `ArgumentValueError AuthenticationError AuthorizationError CheckError CodePageError CommandExecutionError
CommandNotFoundError EauthAuthenticationError FileLockError FileserverConfigError GitLockError GitRemoteError
InvalidConfigError InvalidEntityError InvalidKeyError LoaderError LoggingRuntimeError MasterExit MinionError MissingSmb
NotImplemented NxosCliError NxosClientError NxosError NxosRequestNotSupported PkgParseError PublishError SaltCacheError
SaltClientError SaltClientTimeout SaltCloudConfigError SaltCloudException SaltCloudExecutionFailure
SaltCloudExecutionTimeout SaltCloudNotFound SaltCloudPasswordError SaltCloudSystemExit SaltConfigurationError
SaltDaemonNotRunning SaltDeserializationError SaltException SaltInvocationError SaltMasterError
SaltMasterUnresolvableError SaltNoMinionsFound SaltRenderError SaltReqTimeoutError SaltRunnerError SaltSyndicMasterError
SaltSystemExit SaltValidationError SaltWheelError TemplateError TimedProcTimeoutError TimeoutError
TokenAuthenticationError UnsupportedAlgorithm VMwareApiError VMwareConnectionError VMwareFileNotFoundError
VMwareMultipleObjectsError VMwareNotFoundError VMwareObjectExistsError VMwareObjectNotFoundError
VMwareObjectRetrievalError VMwarePowerOnError VMwareRuntimeError VMwareSaltError VMwareSystemError VMwareVmCreationError
VMwareVmRegisterError`
