package saltcli

// BecomeUser does nothing on Windows, where the service manager chooses the user.
func BecomeUser(string) error { return nil }
