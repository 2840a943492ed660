# Installs the minion as the service salt-minion, or updates its program: run it as an administrator in the directory of the unpacked zip.
#
#   .\install.ps1 [-Master salt.example.org] [-Id NAME] [-NoStart]
#
# Configuration, keys and logs are below C:\ProgramData\Salt Project\Salt, as stock's are, and stay as they are.
#Requires -RunAsAdministrator
param([string] $Master, [string] $Id, [switch] $NoStart)
$ErrorActionPreference = 'Stop'

$service = 'salt-minion'
$programs = Join-Path $env:ProgramFiles 'Salt Project\Salt'
$data = Join-Path $env:ProgramData 'Salt Project\Salt'
$config = Join-Path $data 'conf'
$program = Join-Path $programs 'brine-minion.exe'

if (Get-Service -Name $service -ErrorAction SilentlyContinue) {
    Stop-Service -Name $service
}
New-Item -ItemType Directory -Force -Path $programs, $config, (Join-Path $config 'minion.d') | Out-Null
# The keys of the minion are below the directory: SYSTEM (S-1-5-18) and administrators (S-1-5-32-544) alone may read it.
& icacls.exe $data /inheritance:r /grant '*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' /Q | Out-Null
if ($LASTEXITCODE -ne 0) { throw "icacls failed with $LASTEXITCODE" }
Copy-Item -Force -Path (Join-Path $PSScriptRoot 'brine-minion.exe') -Destination $program

$lines = @()
if ($Master) { $lines += "master: $Master" }
if ($Id) { $lines += "id: $Id" }
if ($lines) {
    Set-Content -Encoding ASCII -Path (Join-Path $config 'minion.d\install.conf') -Value $lines
}

if (-not [System.Diagnostics.EventLog]::SourceExists($service)) {
    New-EventLog -LogName Application -Source $service
}
$command = '"{0}" minion' -f $program
if (Get-Service -Name $service -ErrorAction SilentlyContinue) {
    & sc.exe config $service binPath= $command start= auto | Out-Null
} else {
    New-Service -Name $service -DisplayName 'Salt Minion' -Description 'The Salt minion (brine)' `
        -BinaryPathName $command -StartupType Automatic | Out-Null
}
# It starts again after an exit code other than 0, as after a failure.
& sc.exe failure $service reset= 86400 actions= restart/5000/restart/30000/restart/60000 | Out-Null
& sc.exe failureflag $service 1 | Out-Null
if (-not $NoStart) {
    Start-Service -Name $service
}
Write-Output "$service runs $program with the configuration in $config"
