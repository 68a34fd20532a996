# Databases as a sync would make them, for accounts in which syncs may not, or in which rights must be granted first.

locals {
  root = var.prefix == "" ? "" : "${var.prefix}/"
}

resource "aws_glue_catalog_database" "lake" {
  for_each = setunion(var.databases, ["__segment_datalake"])

  name         = each.value
  location_uri = "s3://${var.bucket}/${local.root}segment-data/"
  tags         = var.tags
}
