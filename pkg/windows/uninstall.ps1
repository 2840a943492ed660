# Removes the service salt-minion and its program. Configuration, keys and logs stay, unless -Purge is given.
#Requires -RunAsAdministrator
param([switch] $Purge)
$ErrorActionPreference = 'Stop'

$service = 'salt-minion'
if (Get-Service -Name $service -ErrorAction SilentlyContinue) {
    Stop-Service -Name $service
    & sc.exe delete $service | Out-Null
}
if ([System.Diagnostics.EventLog]::SourceExists($service)) {
    Remove-EventLog -Source $service
}
Remove-Item -Force -ErrorAction SilentlyContinue -Path (Join-Path $env:ProgramFiles 'Salt Project\Salt\brine-minion.exe')
if ($Purge) {
    Remove-Item -Recurse -Force -ErrorAction SilentlyContinue -Path (Join-Path $env:ProgramData 'Salt Project\Salt')
}
