# glmnet for glmnet_fit.py: reads commands, answers one line each. Arrays travel as files of the folder that is named.
# The seconds are those of the processor for one run; short runs are repeated, for the clock of R ticks in milliseconds.
folder <- commandArgs(trailingOnly = TRUE)[1]
say <- function(...) { cat(..., "\n", sep = ""); flush(stdout()) }
ready <- tryCatch({ suppressPackageStartupMessages({ library(Matrix); library(glmnet) }); TRUE },
                  error = function(e) { say("error ", conditionMessage(e)); FALSE })
if (!ready) quit(status = 1)
invisible(glmnet.control(fdev = 0, devmax = 1, mnlam = 10000))  # no path ends early
held <- new.env()  # the problem
array <- function(name, what, count, size) readBin(file.path(folder, paste0(name, ".bin")), what, count, size)
numbers <- function(name, count) array(name, "double", count, 8)
whole <- function(name, count) array(name, "integer", count, 4)

load <- function(w) {
  n <- as.integer(w[3]); p <- as.integer(w[4]); entries <- as.integer(w[6])
  held$data <- if (w[5] == "1") {
    new("dgCMatrix", x = numbers("x", entries), i = whole("i", entries), p = whole("p", p + 1L), Dim = c(n, p))
  } else matrix(numbers("x", n * p), n, p)
  held$fold <- whole("fold", n)
  held$options <- list(y = numbers("y", n), family = w[2], alpha = as.numeric(w[9]), standardize = FALSE,
                       intercept = w[7] == "1", penalty.factor = numbers("factors", p), maxit = 10000000,
                       lower.limits = if (w[8] == "1") 0 else -Inf)
}

run <- function(kind, tolerance, count) {
  given <- c(list(x = held$data, lambda = numbers("lambda", count), thresh = tolerance), held$options)
  if (kind == "cv") given <- c(given, list(foldid = held$fold))
  once <- function() suppressWarnings(do.call(if (kind == "cv") cv.glmnet else glmnet, given))
  short <- if (kind == "cv") 0.6 else 0.1  # cv.glmnet makes so much garbage that a few runs are needed
  invisible(gc()); start <- proc.time(); fit <- once(); runs <- 1
  spent <- sum((proc.time() - start)[1:2])
  if (spent < short) {  # a short first call may have compiled: it does not count
    invisible(gc()); runs <- 0; start <- proc.time()
    while (runs == 0 || spent < short) { fit <- once(); runs <- runs + 1; spent <- sum((proc.time() - start)[1:2]) }
  }
  if (kind == "cv") fit <- fit$glmnet.fit
  writeBin(as.vector(as.matrix(rbind(fit$a0, fit$beta))), file.path(folder, "answer.bin"))
  spent / runs
}

say(as.character(packageVersion("glmnet")))
input <- file("stdin"); open(input)
while (length(line <- readLines(input, n = 1)) > 0) {
  w <- strsplit(line, " ")[[1]]
  tryCatch({
    if (w[1] == "load") { load(w); say("loaded") }
    else say(format(run(w[1], as.numeric(w[2]), as.integer(w[3])), digits = 9))
  }, error = function(e) say("error ", gsub("\n", " ", conditionMessage(e))))
}
