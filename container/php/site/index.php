<?php
// SPDX-License-Identifier: MIT
// index.php - shows which container answered.
header("Content-Type: text/plain; charset=utf-8");
echo "PHP ", PHP_VERSION, " on ", gethostname(), ", for ", $_SERVER["SERVER_SOFTWARE"], "\n";
