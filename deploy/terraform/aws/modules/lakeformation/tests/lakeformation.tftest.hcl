mock_provider "aws" {}

variables {
  databases = ["web", "__segment_datalake"]
  roles = {
    data_lake        = "arn:aws:iam::123456789012:role/SegmentDataLakeRole"
    instance_profile = "arn:aws:iam::123456789012:role/SegmentEMRInstanceProfileRole"
  }
}

run "both_roles_have_all_databases_and_all_tables" {
  assert {
    condition = toset(keys(aws_lakeformation_permissions.databases)) == toset([
      "data_lake:web", "data_lake:__segment_datalake", "instance_profile:web", "instance_profile:__segment_datalake",
    ])
    error_message = "A grant is missing."
  }

  assert {
    condition = alltrue([
      for name, one in aws_lakeformation_permissions.tables :
      toset(one.permissions) == toset(["ALL"]) && one.table[0].wildcard && "${one.principal}:${one.table[0].database_name}" == "${var.roles[split(":", name)[0]]}:${split(":", name)[1]}"
    ])
    error_message = "A table is not granted."
  }

  assert {
    condition     = { for name, one in aws_lakeformation_permissions.catalog : one.principal => one(one.permissions) } == { for arn in values(var.roles) : arn => "CREATE_DATABASE" }
    error_message = "Databases of later sources cannot be made."
  }
}

run "databases_may_be_left_to_others" {
  variables {
    may_create_databases = false
  }

  assert {
    condition     = length(aws_lakeformation_permissions.catalog) == 0
    error_message = "A role may make databases."
  }
}
