resource "aws_emr_managed_scaling_policy" "lake" {
  count = var.scaling == "managed" ? 1 : 0

  cluster_id = aws_emr_cluster.lake.id

  compute_limits {
    unit_type                       = "Instances"
    minimum_capacity_units          = var.minimum_units
    maximum_capacity_units          = var.maximum_units
    maximum_ondemand_capacity_units = var.maximum_units
    maximum_core_capacity_units     = var.core_instance_count
  }

  # What it scales.
  depends_on = [aws_emr_instance_group.task]
}

# The rules of Segment's module: each adds or takes one node, if what it looks at was so for five minutes. Segment's also
# takes a task node away while ContainerPendingRatio is at least 0, which is always, also under load; that one is left out.
locals {
  rules = {
    core = [
      { name = "HdfsIsFull", metric = "HDFSUtilization", unit = "PERCENT", if = "GREATER_THAN_OR_EQUAL", than = 80, add = 1, pause = 300 },
      { name = "HdfsIsEmpty", metric = "HDFSUtilization", unit = "PERCENT", if = "LESS_THAN", than = 50, add = -1, pause = 300 },
    ]
    task = [
      { name = "ContainersWait", metric = "ContainerPendingRatio", unit = "COUNT", if = "GREATER_THAN_OR_EQUAL", than = 0.75, add = 1, pause = 120 },
      { name = "MemoryIsUsed", metric = "YARNMemoryAvailablePercentage", unit = "PERCENT", if = "LESS_THAN_OR_EQUAL", than = 15, add = 1, pause = 120 },
      { name = "MemoryIsFree", metric = "YARNMemoryAvailablePercentage", unit = "PERCENT", if = "GREATER_THAN_OR_EQUAL", than = 75, add = -1, pause = 120 },
    ]
  }
  # As EMR's API takes them.
  policy_rules = {
    for group, rules in local.rules : group => [
      for rule in rules : {
        Name = rule.name
        Action = {
          SimpleScalingPolicyConfiguration = {
            AdjustmentType    = "CHANGE_IN_CAPACITY"
            ScalingAdjustment = rule.add
            CoolDown          = rule.pause
          }
        }
        Trigger = {
          CloudWatchAlarmDefinition = {
            ComparisonOperator = rule.if
            EvaluationPeriods  = 1
            MetricName         = rule.metric
            Namespace          = "AWS/ElasticMapReduce"
            Period             = 300
            Statistic          = "AVERAGE"
            Threshold          = rule.than
            Unit               = rule.unit
          }
        }
      }
    ]
  }
  core_rules = var.scaling == "managed" ? null : jsonencode({
    Constraints = { MinCapacity = var.core_instance_count, MaxCapacity = var.core_instance_max_count }
    Rules       = local.policy_rules.core
  })
  task_rules = var.scaling == "managed" ? null : jsonencode({
    Constraints = { MinCapacity = var.task_instance_count, MaxCapacity = var.task_instance_max_count }
    Rules       = local.policy_rules.task
  })
}
